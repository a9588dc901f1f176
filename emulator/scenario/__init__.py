"""The YAML language of scenarios: the start of a bank, scripted rules, and stories (CONTRACT 10).

`loader.py` reads a file into the form of `model.py`. `target.py` and `applying.py` apply its start (`start.py`). Its
rules (`rule.py`) join the others of the bank (`rules.py`), which match facts of a request (`matching.py`, `facts.py`)
and have `effects/`. `player.py` plays its story: `steps/` by actors (`actors.py`, `persona.py`) over a transport
(`transport.py`), each answer compared with what was expected (`expectation.py`).
"""
