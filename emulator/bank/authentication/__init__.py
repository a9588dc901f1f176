"""Strong customer authentication, from the TPP's request for it to the redirect that reports its outcome.

`sca.py` is the state machine, `authorisations.py` opens SCAs, those of payments and baskets too, `sca_control.py` is
the machine without pages.

A step of the customer is in `steps` (`sca.py`), `approve` (`sca_control.py`), a page
(`web/pages/sca_pages.py`, `templates/sca`, `wording.json`), and where a choice is given in place of the customer:
`control/operations/sca.py`, `cli/sca.py`, `scenario/steps/psu.py`. The login of `/my` has steps of its own
(`web/pages/my_pages.py`). What is known of a customer is a member of `Sca` or `ScaTarget` (`bank/documents.py`); a
second SCA of the same matter takes over what `_COPIED` names (`authorisations.py`).
"""
