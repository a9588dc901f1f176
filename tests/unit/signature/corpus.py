"""`corpus.jsonl`: 500 requests that are signed wrongly, each with what the bank says of it.

    python -m tests.unit.signature.corpus # the same requests, with the verdicts of today's code

The first line of the file has the certificates, and what each client sends. A request is one of these with a mistake:
its Signature, or headers that are changed. A row of `mistakes.py` is told by the names of the requests, and a new one
is told in test_diagnosis.py.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.x509 import load_pem_x509_certificate

from emulator.api.signature import SignatureRefused, check
from emulator.bank.settings import Settings
from emulator.httpsig.keyid import key_id_for
from tests.unit.signature.making import NOW

CORPUS = Path(__file__).with_name("corpus.jsonl")


def judged() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each request of the corpus, and what the bank says of it today."""
    with CORPUS.open(encoding="utf-8") as lines:
        first, *requests = map(json.loads, lines)
    for request in requests:
        yield request, verdict(first, request)


@cache
def _certificate(der: str) -> Any:
    return load_pem_x509_certificate(f"-----BEGIN CERTIFICATE-----\n{der}\n-----END CERTIFICATE-----\n".encode())


def verdict(first: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """What the bank says of a request of the corpus: its messages and the mistake that it found, or only its notes."""
    client = first["client"][request["name"].partition(":")[0]]
    body = client["body"].encode()
    changed = dict(request.get("changed", {}))
    pairs = [*client["headers"], ("TPP-Signature-Certificate", "@signer")]
    pairs = [(name, changed.get(name, text)) for name, text in pairs]
    pairs += [pair for pair in changed.items() if pair not in pairs]
    pairs += [("Signature", request["signature"])]
    key_id = key_id_for(_certificate(first["certificate"]["signer"]))
    headers = [
        (name, first["certificate"].get(text[1:], text.replace("@key", key_id)))
        for name, text in pairs
        if text is not None
    ]
    trust = request.get("trust", "any")
    try:
        verified = check(
            client["method"],
            client["target"],
            headers,
            body,
            digest_required=bool(body),
            settings=Settings(trust=trust),
            instant=NOW.timestamp() + request.get("after", 0),
            trusted_ca=_certificate(first["certificate"]["ca"]) if trust == "sandbox-ca" else None,
        )
    except SignatureRefused as refused:
        shown = refused.diagnosis()
    else:
        shown = {"notes": verified.notes}
    likely, place = shown.get("likelySent"), shown.get("firstDifference")
    if likely is not None and "hash" in shown:  # the search has found what was signed, not only something near it
        encoding = "utf-16-le" if shown["mistake"].endswith("utf-16") else "utf-8"
        name = shown["hash"]["algorithm"].replace("-", "")
        assert hashlib.new(name, likely.encode(encoding)).hexdigest() == shown["hash"]["signed"]
    verdict_parts = {
        "messages": [
            [message["code"], message["path"], re.sub(r"[0-9]+ tried", "some tried", message["text"])]
            for message in shown.get("messages", [])
        ],
        "mistake": shown.get("mistake"),
        "place": place and [place["line"], place["column"], place["sent"]],
        "hash": shown.get("hash", {}).get("algorithm"),
        "notes": list(shown.get("notes", [])),
    }
    return {name: value for name, value in verdict_parts.items() if value}


def main() -> None:
    with CORPUS.open(encoding="utf-8") as lines:
        first = next(lines)
    every = [{**request, "verdict": now} for request, now in judged()]
    CORPUS.write_text(first + "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in every), encoding="utf-8")


if __name__ == "__main__":
    main()
