"""Verification of payee: compares the creditor's name with the account holder's (payments.md#verification-of-payee).

Names are compared by their words: in lower case, without accents, punctuation and legal forms (AS, GmbH, ...).

| result | when |
| MTCH | the same words in the same order |
| CMTC | the same words in another order; the words of the shorter name (two or more) are in the longer one in the same
|      | order, each whole or as its initial; or at least 85 % of the letters agree |
| NMTC | anything else |
| NOAP | the account is not at this bank |

The codes and the names of the members are those of the European scheme. The limit of a close match is assumed: the
scheme leaves it to the banks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from emulator.bank.accounts import accounts
from emulator.bank.bank import Bank
from emulator.bank.documents import Account, PartyNameMatch, PayeeVerification
from emulator.bank.errors import Message, shortened
from emulator.bank.scheme.rules import PaymentDraft

CLOSE = 0.85  # the part of the letters that agree in a close match
FEWEST_WORDS = 2  # of a name that is contained in the other
# fmt: off
LEGAL_FORMS = frozenset((
    "ab", "ag", "ans", "aps", "as", "asa", "ba", "bv", "co", "corp", "da", "ek", "enk", "ev", "gmbh", "hf", "inc",
    "iks", "kf", "kg", "ks", "limited", "llc", "llp", "ltd", "nuf", "nv", "ohg", "oy", "oyj", "plc", "sa", "sarl",
    "sas", "se", "sl", "spa", "srl", "sti", "ug",
))
# fmt: on
_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ı": "i"})
_JOINED = re.compile(r"['’`./]")
_BETWEEN = re.compile(r"[\W_]+")
_PATH = "creditorName"
_BEST_FIRST: tuple[PartyNameMatch, ...] = ("MTCH", "CMTC", "NMTC")


def words(name: str) -> list[str]:
    """The words of a name in the form in which they are compared; a name that is only a legal form keeps it."""
    small = unicodedata.normalize("NFKD", name.casefold().translate(_LETTERS))
    letters = "".join(letter for letter in small if not unicodedata.combining(letter))
    split = _BETWEEN.sub(" ", _JOINED.sub("", letters)).split()
    end = len(split)
    while end > 1 and split[end - 1] in LEGAL_FORMS:
        end -= 1
    return split[:end]


def compare(name: str, holder: str) -> PartyNameMatch:
    """How well a name matches the holder's: MTCH, CMTC or NMTC; symmetric in its arguments."""
    one, other = sorted((words(name), words(holder)), key=lambda split: (len(split), split))
    if not one:
        return "NMTC"
    if one == other:
        return "MTCH"
    if sorted(one) == sorted(other) or (len(one) >= FEWEST_WORDS and _within(one, other)):
        return "CMTC"
    alike = SequenceMatcher(None, "".join(one), "".join(other), autojunk=False).ratio()
    return "CMTC" if alike >= CLOSE else "NMTC"


def _within(shorter: list[str], longer: list[str]) -> bool:
    """Whether the other name contains the words of one in the same order, each in full or as an initial.

    At least one word must be in full in both.
    """
    rest = iter(longer)  # each word is looked for behind the one before
    pairs = [(word, next((other for other in rest if _same_word(word, other)), None)) for word in shorter]
    return all(other is not None for _, other in pairs) and any(word == other for word, other in pairs)


def _same_word(word: str, other: str) -> bool:
    return word == other or (min(len(word), len(other)) == 1 and word[0] == other[0])


def verify(bank: Bank, initiation: Mapping[str, Any], creditor: Account | None) -> PayeeVerification:
    """The result for one payment, of a joint account the best one; `matchedName`: the holder's name, if close."""
    holders = () if creditor is None else accounts.holders(bank, creditor)
    matches = {compare(initiation[_PATH], holder): holder for holder in reversed(holders)}
    best: PartyNameMatch = next((match for match in _BEST_FIRST if match in matches), "NOAP")
    return {"partyNameMatch": best, "matchedName": matches[best]} if best == "CMTC" else {"partyNameMatch": best}


def refusals(draft: PaymentDraft) -> Iterator[Message]:
    """With `payee_check: refuse`: PAYMENT_FAILED for a name that matches closely or not at all."""
    verification = verify(draft.bank, draft.initiation, draft.creditor)
    if verification["partyNameMatch"] in ("CMTC", "NMTC"):
        yield draft.wrong("PAYMENT_FAILED", _text(verification), _PATH)


def warnings(verification: PayeeVerification) -> list[Message]:
    """The WARNING for a payment's verification; none for a match."""
    if verification["partyNameMatch"] == "MTCH":
        return []
    return [Message("PAYMENT_FAILED", _text(verification), _PATH, "WARNING")]


def _text(verification: PayeeVerification) -> str:
    match = verification["partyNameMatch"]
    if match == "CMTC":
        holder = shortened(verification["matchedName"])
        return f"CMTC: the name is similar to that of the account's holder, {holder}."
    if match == "NMTC":
        return "NMTC: the name is not that of the account's holder."
    return "NOAP: the name cannot be verified, because the account is not at this bank."
