"""The TPP interface `/v1`: a table of operations and one pipeline of gates over the synchronous core.

A `Request` (`messages.py`) goes to the `BankService` of its bank (`service.py`) and through its gates: address
(`router.py`), signature (`signature/`), headers (`headers.py`), query, body (`json_body.py` with `shapes/`), PSU and
access, and repeat of a creation (`gates.py`). The handler of the operation (`operations/`) then calls the domain, and
`render.py` writes the answer. `log.py` is the request log, `guards.py` protects the interfaces without a signature.

`description/` describes the interface to other programs, from the same table.
"""
