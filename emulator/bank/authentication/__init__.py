"""Strong customer authentication, from the TPP's request for it to the redirect that reports its outcome.

`sca.py` is the state machine, `authorisations.py` opens SCAs for payments and baskets, `sca_control.py` is the machine
without pages.
"""
