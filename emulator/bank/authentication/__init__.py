"""Strong customer authentication, from the TPP's request for it to the redirect that reports its outcome.

`sca.py` is the state machine, `authorisations.py` opens SCAs, those of payments and baskets too, `sca_control.py` is
the machine without pages.
"""
