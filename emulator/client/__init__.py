"""A TPP's side: `sign` for any HTTP library, and a signed client, synchronous and asynchronous.

Beside the rooms of the bank: it knows signatures and HTTP, nothing of how the bank works.
"""

from emulator.client.asynchronous import AsyncTppClient
from emulator.client.identity import Identity
from emulator.client.response import Response
from emulator.client.signing import sign, signed_headers
from emulator.client.synchronous import TppClient
from emulator.client.tampering import TAMPERINGS

__all__ = ["TAMPERINGS", "AsyncTppClient", "Identity", "Response", "TppClient", "sign", "signed_headers"]
