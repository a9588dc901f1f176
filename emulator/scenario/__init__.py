"""The YAML language of scenarios: the start of a bank, scripted rules, and stories.

`loader.py` reads a file by the form of `model.py`; `target.py` applies it to a bank: its `start.py`, then its rules.
A rule (`rule.py`) has conditions on the facts of a request (`matching.py`), and `effects/`; `rules.py` has the rules of
a bank.
`player.py` plays a story: `steps/` of actors (`actors.py`) over a transport (`transport.py`), each answer compared with
what the step expects. `variables.py` fills `${names}` in.
"""
