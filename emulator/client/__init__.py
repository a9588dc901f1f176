"""A TPP's side: `sign` for any HTTP library, and a signed client, synchronous and asynchronous.

It knows signatures and HTTP, and nothing of how the bank works.
"""

from emulator.client.signing import TAMPERINGS, Identity, sign, signed_headers
from emulator.client.tpp import AsyncTppClient, Response, TppClient

__all__ = ["TAMPERINGS", "AsyncTppClient", "Identity", "Response", "TppClient", "sign", "signed_headers"]
