"""The RSA keys that the certificates of all tests share: making one takes as long as ten tests of the core.

A test uses fewer than there are, so that no two of its own are the same. The processes of a run of tests get them from
the one that starts them, and give them to the banks that they start.
"""

from __future__ import annotations

from itertools import count

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)

from emulator.ca import certificates

MOST = 16
_keys: list[RSAPrivateKey] = []
_new = certificates.new_rsa_key


def share(keys: list[str], first: int = 0) -> None:
    """From now on certificates of this process have these keys, the next of them `first`, and as many new as lack."""
    for text in keys[len(_keys) :]:
        loaded = load_der_private_key(bytes.fromhex(text), None, unsafe_skip_rsa_key_validation=True)
        assert isinstance(loaded, RSAPrivateKey)
        _keys.append(loaded)
    numbers = count(first)

    def key() -> RSAPrivateKey:
        number = next(numbers) % MOST
        while number >= len(_keys):
            _keys.append(_new())
        return _keys[number]

    certificates.new_rsa_key = key


def shared() -> list[str]:
    """The keys that there are, as other processes take them."""
    return [key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()).hex() for key in _keys]


def drawn() -> list[str]:
    """All of them."""
    _keys.extend(_new() for _ in range(MOST - len(_keys)))
    return shared()
