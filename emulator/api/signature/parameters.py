"""The parameters of the Signature header: wrapping, names listed, algorithm, the signature's own encoding."""

from __future__ import annotations

import binascii
import re
from collections import Counter
from functools import lru_cache

from emulator.api.signature.evidence import Evidence
from emulator.api.signature.result import SignaturePolicy, fault
from emulator.httpsig.header import HeaderUnreadable, parse
from emulator.httpsig.message import REQUEST_TARGET
from emulator.httpsig.wrapping import WrappingUnreadable, is_wrapped, unwrap

ALGORITHMS = {"rsa-sha256": "SHA-256", "rsa-sha512": "SHA-512"}
_REFUSED = {
    "none": "a request must be signed",
    "hs2019": "it belongs to a later draft and names no hash",
    "rsa-sha1": "SHA-1 can be forged",
}
_LONGEST_LIST = 4096
_HEXADECIMAL = re.compile(r"(?:[0-9A-Fa-f]{2}:?){128,}")  # of the 128 bytes or more that a signature has


def read_parameters(found: Evidence, policy: SignaturePolicy) -> None:
    """Unwrap and parse the Signature header into `found`, adding a fault for each parameter that is not usable."""
    text = found.present.get("signature")
    if not text:
        return
    try:
        plain = _plain(text, found, policy)
        found.header = header = parse(plain)
    except (WrappingUnreadable, HeaderUnreadable) as error:
        found.faults.append(fault("Signature", f"The header Signature cannot be read: {error}"))
        return
    if header.notes:
        found.notes.extend(header.notes)
    if header.key_id is None:
        found.faults.append(fault("Signature", "The parameter keyId is missing: SN=<serial>,CA=<issuer>"))
    _read_algorithm(found, header.algorithm, policy)
    if header.headers is None:
        found.names = ("date",)
    else:
        found.names, trouble = _listed(header.headers[: _LONGEST_LIST + 1])
        if trouble is not None:
            found.faults.append(fault("Signature", trouble))
    _read_signature(found, header.signature)


def _plain(text: str, found: Evidence, policy: SignaturePolicy) -> str:
    """The header text without RFC 2047 wrapping (SPEC 5.2 rule 4)."""
    if is_wrapped(text):
        return unwrap(text)
    if not text.isascii():
        if not policy.lenient:
            unwrapped = "The header Signature has characters beyond ASCII, it must be wrapped as =?utf-8?B?<base64>?="
            found.faults.append(fault("Signature", unwrapped))
        else:
            found.notes.append("Signature: characters beyond ASCII without RFC 2047 wrapping")
    return text


def _read_algorithm(found: Evidence, algorithm: str | None, policy: SignaturePolicy) -> None:
    hash_name = ALGORITHMS.get(algorithm or "")
    if hash_name is not None:
        found.hash_name = hash_name
        return
    if algorithm is None:
        found.faults.append(fault("Signature", "The parameter algorithm is missing: rsa-sha256"))
        return
    lower = algorithm.lower()
    if lower in ALGORITHMS:
        found.hash_name = ALGORITHMS[lower]
        if policy.lenient:
            found.notes.append(f"Signature: the algorithm is spelt {algorithm}")
            return
        found.faults.append(fault("Signature", f'The algorithm must be written in lower case: "{lower}"'))
        return
    reason = _REFUSED.get(lower) or ("a shared secret proves nothing" if lower.startswith("hmac") else None)
    why = f" ({reason})" if reason else ""
    found.faults.append(fault("Signature", f'The algorithm "{algorithm[:60]}" is not accepted{why}; use rsa-sha256'))


@lru_cache(maxsize=512)
def _listed(text: str) -> tuple[tuple[str, ...], str | None]:
    """The names of a headers parameter, and what is wrong with them."""
    if len(text) > _LONGEST_LIST:
        return (), f"The headers parameter is longer than {_LONGEST_LIST} characters"
    spaced = text.replace(",", " ").replace(";", " ")
    names = tuple(spaced.lower().split())
    if not names:
        return (), "The headers parameter is empty"
    if spaced != text:
        return names, "The headers parameter separates names by something else than blanks"
    upper = [name for name in text.split() if name != name.lower()]
    if upper:
        return names, f"The headers parameter must list names in lower case: {', '.join(upper)}"
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        return names, f"The headers parameter lists {', '.join(twice)} twice"
    pseudo = [name for name in names if name.startswith("(") and name != REQUEST_TARGET]
    if pseudo:
        return names, f"The headers parameter lists {', '.join(pseudo)}, which draft 10 does not know"
    return names, None


def _read_signature(found: Evidence, text: str | None) -> None:
    if text is None:
        found.faults.append(fault("Signature", "The parameter signature is missing"))
        return
    found.signature = _decoded(text)
    if found.signature is None:
        found.faults.append(fault("Signature", f"The parameter signature is not base64{_encoding_trouble(text)}"))


def _decoded(text: str) -> bytes | None:
    if _HEXADECIMAL.fullmatch(text):  # its digits are base64 too, of other bytes
        return None
    try:
        return binascii.a2b_base64(text, strict_mode=True) or None
    except ValueError:
        return None


def _encoding_trouble(text: str) -> str:
    if not text:
        return ": it is empty"
    if _HEXADECIMAL.fullmatch(text):
        return ": it is in hexadecimal"
    if text.startswith("b'"):
        return ": it is Python's text of bytes, decode() makes it base64"
    if any(character.isspace() for character in text):
        return ": it holds blanks or line breaks"
    if "-" in text or "_" in text:
        return ": it is URL-safe base64, use the alphabet with + and /"
    if "%" in text:
        return ": it is URL-encoded"
    if len(text) % 4 and text.replace("+", "").replace("/", "").isalnum():
        return ": its padding is missing"
    return ""
