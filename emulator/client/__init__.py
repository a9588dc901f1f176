"""The TPP's side: `sign` for any HTTP library, and a signing client, synchronous and asynchronous.

It depends on signatures and HTTP only, not on the bank.
"""

from emulator.client.clients import AsyncTppClient, TppClient, TppResponse
from emulator.client.signing import TAMPERINGS, Identity, sign, signed_headers

__all__ = ["TAMPERINGS", "AsyncTppClient", "Identity", "TppClient", "TppResponse", "sign", "signed_headers"]
