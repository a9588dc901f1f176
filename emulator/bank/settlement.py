"""The money of payments: reserved when they are accepted, later booked or released.

What is paid by itself is a part: a single payment, or an entry of a bulk (payments.md#bulk-payments). A payment's
`held` is its reservation (payments.md#money), shown as the pending transaction `pendingId` of each part, or of the
payment if its entries are booked as one. The bank's fee is a separate transaction (assumed).

`entries` of a bulk is parallel to its `initiation.payments`: `{status, amount, fee?, rate?, creditorAccountId?,
pendingId?}`; status OPEN (not funded yet), HELD, ACSC or RJCT. Each run funds the open entries in order; an entry
without enough money waits for the next run, while later ones may still be funded.

    moment                          function     account                       payment
    accepted, or money has come     `hold`       reserved, pending shown       `held`, `pendingId`, `feePendingId`
    without money                   `hold`       unchanged                     unchanged; the answer is False
    ACSC                            `settle`     booked, and the creditor's    without them
                                                 if this bank holds it
    ACCP, RJCT, CANC                `release`    as before                     without them

`force`, for a status that a script or a person sets, reserves below the credit line. A debtor account that was deleted
takes part in nothing. Nothing here prevents a second booking: `flows.change` does nothing for the status that a
payment already has.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from emulator.bank import products
from emulator.bank.accounts import accounts, ledger
from emulator.bank.accounts.transactions import batch_texts
from emulator.bank.bank import Bank
from emulator.bank.clock import oslo_day
from emulator.bank.customers.people import CORPORATE
from emulator.bank.documents import (
    Account,
    BulkEntry,
    CurrencyExchange,
    Payment,
    Price,
    TransactionDetails,
    TransactionMembers,
)
from emulator.bank.kinds import ACCOUNT
from emulator.bank.money import ZERO, plain
from emulator.bank.scheme.rules import creditor_ref, structured_references
from emulator.bank.scheme.transitions import NOT_EXECUTED

OPEN, HELD, PAID, REJECTED = "OPEN", "HELD", "ACSC", "RJCT"
FEE_CODE = "PMNT-ICDT-FEES"


@dataclass(frozen=True, slots=True)
class PaymentPart:
    """What is paid by itself: a single payment, or an entry of a bulk, with the members that it would have alone.

    `state`: the document of the payment, or the entry in it; it has the price and `pendingId`.
    """

    initiation: Mapping[str, Any]
    state: Payment | BulkEntry


def cost(price: Price) -> Decimal:
    """The amount that one execution of a payment, or of an entry of a bulk, debits, including the fee."""
    return Decimal(price["amount"]) + Decimal(price.get("fee", "0"))


def funds_available(bank: Bank, payment: Payment) -> bool:
    """Whether an authorised payment is funded; for one that waits without a reservation, as of now."""
    if "held" in payment or not (payment["status"] in NOT_EXECUTED or has_open(payment)):
        return payment["fundsAvailable"]
    return covers(bank, payment)


def covers(bank: Bank, payment: Payment) -> bool:
    """Whether the debtor's account has the money for one execution, of a bulk for its open entries."""
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    needed = sum((cost(part.state) for part in _parts(payment, OPEN)), ZERO)
    return debtor is not None and ledger.available(debtor) >= needed


def has_open(payment: Payment) -> bool:
    """Whether an entry still waits for money; False for a payment that is not a bulk."""
    return any(entry["status"] == OPEN for entry in payment.get("entries", ()))


def is_waiting(payment: Payment) -> bool:
    """Whether the only open entries of a bulk are those without money."""
    return has_open(payment) and all(entry["status"] != HELD for entry in payment["entries"])


def outcome(payment: Payment) -> str | None:
    """The final status of the bulk, by its entries; None while one of them has not its own."""
    statuses = {entry["status"] for entry in payment["entries"]}
    if statuses & {OPEN, HELD}:
        return None
    if statuses == {PAID}:
        return "ACSC"
    return "PART" if PAID in statuses else "RJCT"


def item(payment: Payment, index: int) -> dict[str, Any]:
    """An entry in the form of a single payment: its members and the bulk's debtor account."""
    initiation = payment["initiation"]
    return {**initiation["payments"][index], "debtorAccount": initiation["debtorAccount"]}


def _parts(payment: Payment, status: str) -> list[PaymentPart]:
    """The entries of a bulk with this status; of another payment itself, unless it is open and has its money."""
    if "entries" in payment:
        indexed = enumerate(payment["entries"])
        return [PaymentPart(item(payment, index), entry) for index, entry in indexed if entry["status"] == status]
    return [] if status == OPEN and "held" in payment else [PaymentPart(payment["initiation"], payment)]


def hold(bank: Bank, payment: Payment, *, whole: bool = False, force: bool = False) -> bool:
    """Reserve the money of open parts, in order, and show it pending; returns whether any was.

    `whole`: all parts or none. Without an account nothing is reserved, and the answer is `force`.
    """
    debtor = accounts.payer(bank, payment["debtorAccountId"])
    if debtor is None:
        if force:
            close_open(payment, HELD)  # without an account it can still be advanced manually, like a single payment
        return force
    free = ledger.available(debtor)
    waiting = _parts(payment, OPEN)
    chosen: list[PaymentPart] = []
    for part in waiting:
        if force or cost(part.state) <= free:
            chosen.append(part)
            free -= cost(part.state)
    if not chosen or (whole and len(chosen) < len(waiting)):
        return False
    _set_status(payment, chosen, HELD)
    _reserve(bank, payment, debtor, chosen)
    return True


def _set_status(payment: Payment, parts: Sequence[PaymentPart], status: str) -> None:
    if "entries" in payment:  # a single payment changes its status itself
        for part in parts:
            part.state["status"] = status


def as_batch(payment: Payment) -> bool:
    """Whether the entries of a bulk are booked as one transaction: on request, in the corporate context only."""
    wanted = "entries" in payment and payment["initiation"].get("batchBookingPreferred")
    return payment["context"] == CORPORATE and bool(wanted)


def _reserve(bank: Bank, payment: Payment, debtor: Account, parts: Sequence[PaymentPart]) -> None:
    held = _parts(payment, HELD)
    total = sum((cost(part.state) for part in parts), ZERO)
    ledger.reserve(bank, debtor["id"], total)
    payment["held"] = plain(total + Decimal(payment.get("held", "0")), debtor["currency"])
    pending = held if as_batch(payment) else parts  # a batch replaces the last one
    shown = [_parties(bank, payment, part, debtor)[0] for part in pending]
    for state, members in _debits(bank, payment, debtor, pending, shown):
        waiting = _waiting(payment, members)
        state["pendingId"] = ledger.pend(bank, debtor["id"], waiting, pending=state.get("pendingId"))
    if fees := _fees(held):
        waiting = _waiting(payment, _fee(bank, payment, fees))
        payment["feePendingId"] = ledger.pend(bank, debtor["id"], waiting, pending=payment.get("feePendingId"))


def _fees(parts: Sequence[PaymentPart]) -> Decimal:
    return sum((Decimal(part.state.get("fee", "0")) for part in parts), ZERO)


def _debits(
    bank: Bank,
    payment: Payment,
    debtor: Account,
    parts: Sequence[PaymentPart],
    shown: Sequence[TransactionDetails],
) -> list[tuple[Payment | BulkEntry, TransactionMembers]]:
    """The debtor's transactions, each with the document that has its `pendingId`."""
    if as_batch(payment):
        return [(payment, _batch(bank, payment, parts, shown, debtor))]
    return [
        (part.state, _debit(bank, payment, part, texts, debtor["currency"]))
        for part, texts in zip(parts, shown, strict=True)
    ]


def settle(bank: Bank, payment: Payment) -> None:
    """Book one execution of the funded parts, separately or as a batch: debtor, fee, and creditors in this bank."""
    parts = _parts(payment, HELD)
    _set_status(payment, parts, PAID)
    debtor = bank.documents.get(ACCOUNT, payment["debtorAccountId"])
    held = Decimal(payment.pop("held", "0"))
    if debtor is None or not parts:
        payment.pop("pendingId", None)
        return
    sides = [_parties(bank, payment, part, debtor) for part in parts]
    for state, members in _debits(bank, payment, debtor, parts, [shown for shown, _ in sides]):
        ledger.book(bank, debtor["id"], members, pending=state.pop("pendingId", None), released=held)
        held = ZERO  # released with the first one
    pending, fees = payment.pop("feePendingId", None), _fees(parts)
    if fees:
        ledger.book(bank, debtor["id"], _fee(bank, payment, fees), pending=pending)
    for part, (shown, creditor) in zip(parts, sides, strict=True):
        if creditor is not None:
            ledger.book(bank, creditor["id"], _credit(bank, payment, part, shown, creditor))


def release(bank: Bank, payment: Payment) -> None:
    """Release the reservation, remove the pending transactions, and reopen the entries of a bulk."""
    held = payment.pop("held", None)
    if held is not None and bank.documents.exists(ACCOUNT, payment["debtorAccountId"]):
        ledger.release(bank, payment["debtorAccountId"], Decimal(held))
    pending = [payment.pop("pendingId", None), payment.pop("feePendingId", None)]
    for entry in payment.get("entries", ()):
        if entry["status"] == HELD:
            entry["status"] = OPEN
            pending.append(entry.pop("pendingId", None))
    for transaction_id in pending:
        if transaction_id is not None:
            ledger.withdraw(bank, transaction_id)


def close_open(payment: Payment, status: str = REJECTED) -> None:
    """Set this status on the entries without money: RJCT if rejected, CANC in a cancelled bulk."""
    for entry in payment.get("entries", ()):
        if entry["status"] == OPEN:
            entry["status"] = status


def statuses(payment: Payment) -> list[str]:
    """The transactionStatus of each entry: its own final status, ACCP while only this entry waits for money."""
    undecided = {OPEN: "ACCP" if payment["status"] == "ACSP" else payment["status"], HELD: payment["status"]}
    return [undecided.get(entry["status"], entry["status"]) for entry in payment["entries"]]


def settle_in_part(bank: Bank, payment: Payment) -> None:
    """Book funded entries and reject the others; if all are funded, reject the last one (a status set manually)."""
    undecided = [entry for entry in payment["entries"] if entry["status"] in (OPEN, HELD)]
    if undecided and not has_open(payment):
        release(bank, payment)
        undecided[-1]["status"] = REJECTED
        hold(bank, payment, force=True)
    settle(bank, payment)
    close_open(payment)


# How a payment is shown in the transactions of both sides


def carried(text: str, most: int) -> str:
    """`text` as payment systems transmit it: ISO-8859-1, other letters without diacritics, else `?` (assumed).

    A letter may become several; the result is cut at `most` characters.
    """
    if text.isascii():
        return text
    return "".join(_carried_letter(letter) for letter in text)[:most]


def _carried_letter(letter: str) -> str:
    if letter <= "\xff":
        return letter
    decomposed = unicodedata.normalize("NFKD", letter)
    return "".join(part for part in decomposed if part <= "\xff") or "?"


def changes_text(initiation: Mapping[str, Any]) -> bool:
    """Whether processing changes a text of the payment by re-encoding it; the payment is then ACWC."""
    texts = (initiation.get("creditorName"), initiation.get("remittanceInformationUnstructured"))
    return any(text is not None and carried(text, len(text)) != text for text in texts)


def _texts(initiation: Mapping[str, Any]) -> TransactionDetails:
    shown: TransactionDetails = {}
    if initiation.get("purposeCode"):
        shown["purposeCode"] = initiation["purposeCode"]
    if initiation.get("ultimateDebtor"):
        shown["ultimateDebtor"] = initiation["ultimateDebtor"]
    if initiation.get("endToEndIdentification"):
        shown["endToEndId"] = initiation["endToEndIdentification"]
    if text := initiation.get("remittanceInformationUnstructured"):
        text = carried(text, 140)
        shown["remittanceInformationUnstructured"] = text
        shown["remittanceInformationUnstructuredArray"] = [text]
    if references := [structured.copy() for _, structured in structured_references(initiation)]:
        shown["remittanceInformationStructuredArray"] = references
    return shown


def _parties(
    bank: Bank, payment: Payment, part: PaymentPart, debtor: Account
) -> tuple[TransactionDetails, Account | None]:
    """Debtor, creditor and texts, the same in the transactions of both sides; the creditor's account in this bank."""
    initiation = part.initiation
    to = bank.documents.get(ACCOUNT, part.state.get("creditorAccountId", ""))
    to = to or accounts.named(bank, initiation["creditorAccount"])
    shown: TransactionDetails = {
        "creditorName": carried(initiation["creditorName"], 70),
        "creditorAccount": creditor_ref(initiation, crosses_border=products.of(payment).crosses_border)
        if to is None
        else accounts.reference(to),
        "debtorAccount": accounts.reference(debtor),
        "debtorAgent": debtor["bic"],
        **_texts(initiation),
    }
    if name := accounts.holder(bank, debtor):
        shown["debtorName"] = name
    if agent := to["bic"] if to is not None else initiation.get("creditorAgent"):
        shown["creditorAgent"] = agent
    return shown, to


def _members(bank: Bank, shown: TransactionDetails, amount: Decimal, *, issued: str, code: str) -> TransactionMembers:
    """What every transaction of a payment has: `issued` is the code of ISO 20022, `code` the bank's own."""
    date = bank.clock.today().isoformat()
    return {
        **shown,
        "amount": amount,
        "bookingDate": date,
        "valueDate": date,
        "bankTransactionCode": issued,
        "proprietaryBankTransactionCode": code,
    }


def _debit(
    bank: Bank, payment: Payment, part: PaymentPart, shown: TransactionDetails, currency: str
) -> TransactionMembers:
    """The debtor's transaction in the account's `currency`; `shown`: the `_parties`."""
    product, price = products.of(payment), part.state
    members = _members(bank, shown, -Decimal(price["amount"]), issued=product.issued, code=product.code)
    members["paymentId"] = payment["id"]
    if "rate" in price:
        instructed = part.initiation["instructedAmount"]["currency"]
        rate, date = Decimal(price["rate"]), members["bookingDate"]
        members["currencyExchange"] = _exchange(
            source=currency, target=instructed, unit=instructed, rate=rate, date=date
        )
    return members


def _exchange(*, source: str, target: str, unit: str, rate: Decimal, date: str) -> CurrencyExchange:
    """How an amount was converted: `rate` is the price of one `unit`."""
    return {
        "sourceCurrency": source,
        "exchangeRate": format(rate, "f"),
        "unitCurrency": unit,
        "targetCurrency": target,
        "quotationDate": date,
    }


def _waiting(payment: Payment, members: TransactionMembers) -> TransactionMembers:
    """A debtor's transaction before it is booked: its value date is the day of the planned execution, if any."""
    waiting = members.copy()
    today = waiting.pop("bookingDate")
    waiting["valueDate"] = max(oslo_day(payment["executeAt"]), today) if "executeAt" in payment else today
    return waiting


def _credit(
    bank: Bank, payment: Payment, part: PaymentPart, shown: TransactionDetails, to: Account
) -> TransactionMembers:
    """The creditor's transaction in its account's currency, free of charge (assumed)."""
    product, instructed = products.of(payment), part.initiation["instructedAmount"]
    amount, currency = Decimal(instructed["amount"]), instructed["currency"]
    members = _members(bank, shown, amount, issued=product.received, code=product.code)
    if to["currency"] != currency:
        members["amount"], rate = bank.exchange.converted(amount, currency, to["currency"])
        members["currencyExchange"] = _exchange(
            source=currency, target=to["currency"], unit=currency, rate=rate, date=members["bookingDate"]
        )
    return members


def _fee(bank: Bank, payment: Payment, amount: Decimal) -> TransactionMembers:
    """The bank's fee for a payment, booked as a separate transaction (assumed)."""
    text = f"Gebyr {products.of(payment).code}"
    members = _members(bank, {}, -amount, issued=FEE_CODE, code="Gebyr")
    members["remittanceInformationUnstructured"] = text
    members["remittanceInformationUnstructuredArray"] = [text]
    members["feeFor"] = payment["id"]
    return members


def _batch(
    bank: Bank,
    payment: Payment,
    parts: Sequence[PaymentPart],
    shown: Sequence[TransactionDetails],
    debtor: Account,
) -> TransactionMembers:
    """One transaction for several entries of a bulk (batchBookingPreferred); `shown`: the `_parties` of each."""
    product, currency = products.of(payment), debtor["currency"]
    amounts = [-Decimal(part.state["amount"]) for part in parts]
    own: TransactionDetails = {"debtorAccount": accounts.reference(debtor), "debtorAgent": debtor["bic"]}
    if name := accounts.holder(bank, debtor):
        own["debtorName"] = name
    if information_id := payment["initiation"].get("paymentInformationId"):
        own["endToEndId"] = information_id[:35]
    members = _members(bank, own, sum(amounts, ZERO), issued=product.issued, code=product.code)
    members["paymentId"] = payment["id"]
    members["batch"] = {
        "entries": [
            {"amount": plain(amount, currency), "currency": currency, **batch_texts(texts)}
            for amount, texts in zip(amounts, shown, strict=True)
        ]
    }
    return members
