"""The creation of a payment: the rules of its product and debtor, its cost, and its first SCA (payments.md).

`initiate` checks everything before it writes anything. In this order, and the first step that refuses answers:

    step             refuses with
    `_debtor`        403 FORBIDDEN: unknown or another's, in the same words, or closed; PRODUCT_INVALID for a loan
    `_drafts`        400 with the problems of all rules of the product, of the payment or of each entry of a bulk
    `_price`         400 PAYMENT_FAILED, with `funds_check: initiation` only
    register limit   403 FORBIDDEN, under an agreement
    duplicate        409 CONFLICT, with `allowLogicalDuplicate=false` only

Then it opens the SCA and stores the payment in RCVD. No money is reserved before the approval (`progression.accept`).
Accounts are looked up through a cache of the bank, which is empty after any change of an account or of people's rights.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal, cast

import orjson

from emulator.bank import settlement
from emulator.bank.accounts import accounts, ledger
from emulator.bank.authentication import authorisations
from emulator.bank.bank import Bank
from emulator.bank.clock import later
from emulator.bank.customers import people
from emulator.bank.documents import Account, Approach, BulkEntry, Payment, Price
from emulator.bank.errors import BankError, Message
from emulator.bank.formats import digits_of
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, PAYMENT
from emulator.bank.money import plain
from emulator.bank.payment import payee
from emulator.bank.payment.progression import UNSIGNED_LIFETIME
from emulator.bank.products import Product
from emulator.bank.scheme import execution, rules

DUPLICATE_WINDOW = timedelta(hours=24)
DEAD = ("RJCT", "CANC")
# By the members that named it in earlier orders, until a document changes: a debtor's account with the name of its
# holder, a creditor's account (None: not held by this bank).
AccountCache = dict[tuple[str | None, ...], Any]
NOT_PAYABLE = ("LOAN",)  # assumed: the bank offers no payments from loans


@dataclass(frozen=True, slots=True)
class Script:
    """Effects of scripted rules on a request, of which those on a payment act here; by default there are none.

    `sca`: how the customer's authentication will end (`reject`, `expire`, `fail`, `abandon`); `sca_delay`: the delay
    of each of its pages in seconds; `progress`: the statuses that a payment goes through, each with the seconds before
    it; `fee`: a fee in the debtor account's currency; `permission_removed`: payments from that account are not
    allowed; `quota_exhausted`: the unattended calls are used up; `notification`: the fate of the notifications that
    the request subscribes to (`late`, `twice`, `reordered`, `dropped`, `forged`), with the seconds of `late`.
    """

    sca: str | None = None
    sca_delay: float = 0.0
    progress: Sequence[tuple[str, float]] = ()
    fee: str | None = None
    permission_removed: bool = False
    quota_exhausted: bool = False
    notification: tuple[str, float] | None = None


UNSCRIPTED = Script()


@dataclass(slots=True)
class PaymentOrder:
    """A TPP's payment order: the customer, the body `initiation` (its shape is checked), and the approach for the SCA.

    `national_id` None: the customer is not known before SCA (lenient profile only).
    """

    tpp_id: str
    initiation: Mapping[str, Any]
    approach: Approach
    national_id: str | None
    context: str = people.PRIVATE
    agreement: str | None = None
    allow_duplicate: bool = True
    script: Script = UNSCRIPTED


def initiate(bank: Bank, product: Product, order: PaymentOrder) -> Payment:
    """Create a payment in RCVD with its SCA open (`sca`: the token); BankError names every problem."""
    cache = bank.accounts.values()
    debtor, holder = _debtor(bank, order, cache)
    drafts = _drafts(bank, product, order.initiation, cache, debtor)
    payment = _document(bank, product, order, debtor, drafts)
    if holder is not None:
        payment["debtorName"] = holder
    if payment["agreement"] is not None:
        check_register_limit(bank, payment)
    if not order.allow_duplicate:
        _refuse_duplicate(bank, payment, later(payment["created"], -DUPLICATE_WINDOW))
    payment["sca"] = authorisations.open_for(bank, order.approach, payment, "payment", signer=order.national_id)
    bank.documents.put(PAYMENT, payment)
    if bank.watchers:
        bank.publish({"type": "payment", "id": payment["id"], "status": "RCVD", "at": payment["created"]})
    return payment


def _document(
    bank: Bank, product: Product, order: PaymentOrder, debtor: Account, drafts: list[rules.PaymentDraft]
) -> Payment:
    agreement = order.agreement
    if order.context == people.CORPORATE and agreement is None and order.national_id is not None:
        agreement = agreement_for(bank, order.national_id, debtor)
    price, entries = _price(bank, product, drafts, debtor, order.script, "payments" in order.initiation)
    created = bank.clock.stamp()
    payment: Payment = {
        "id": bank.ids.new(),
        "service": product.service,
        "product": product.name,
        "tpp": order.tpp_id,
        "nationalId": order.national_id,
        "context": order.context,
        "agreement": agreement,
        "initiation": order.initiation,
        "status": "RCVD",
        "history": [{"status": "RCVD", "at": created}],
        "created": created,
        "due": later(created, UNSIGNED_LIFETIME),
        "debtorAccountId": debtor["id"],
        "currency": debtor["currency"],
        "likeness": _likeness(product, order, debtor, drafts),
        "amount": price["amount"],
    }
    payment.update(cast(Payment, price))
    if entries is not None:
        payment["entries"] = entries
    if product.verifies_payee and bank.settings.payee_check != "off":
        payment["payeeVerification"] = payee.verify(bank, order.initiation, drafts[0].creditor)
    if order.script.progress:
        payment["progress"] = list(order.script.progress)
    return payment


def _debtor(bank: Bank, order: PaymentOrder, cache: AccountCache) -> tuple[Account, str | None]:
    """The account to pay from (do not change it) and the name of its holder, from the cache if it is named by IBAN."""
    named = order.initiation["debtorAccount"]
    iban = named.get("iban")
    if iban is None or order.script.permission_removed:
        return _payable(bank, order, named)
    key = (iban, order.national_id, order.context, order.agreement)
    if key not in cache:
        cache[key] = _payable(bank, order, named)
    debtor: tuple[Account, str | None] = cache[key]
    return debtor


def _creditor(bank: Bank, initiation: Mapping[str, Any], cache: AccountCache) -> Account | None:
    """The creditor's account if this bank holds it (do not change it)."""
    named: Mapping[str, str] = initiation["creditorAccount"]
    key = (named.get("iban"), named.get("bban"))
    if key not in cache:
        cache[key] = accounts.named(bank, named)
    creditor: Account | None = cache[key]
    return creditor


def _payable(bank: Bank, order: PaymentOrder, named: Mapping[str, Any]) -> tuple[Account, str | None]:
    """The named account, and its holder; FORBIDDEN for one that is unknown, another person's or closed to payments."""
    account = _named(bank, named)
    allowed = account is not None and (
        order.national_id is None
        or people.may_pay_from(bank, order.national_id, order.context, order.agreement, account)
    )
    if account is None or not allowed:
        raise BankError("FORBIDDEN", "The customer may not pay from this account.", "debtorAccount")
    check_open(bank, account, named, removed=order.script.permission_removed)
    return account, accounts.holder(bank, account)


def check_open(bank: Bank, account: Account, named: Mapping[str, Any], *, removed: bool = False) -> None:
    """Refuse an account from which the bank allows no payments; `named`: the debtorAccount of the initiation.

    FORBIDDEN if it or each card that names it is blocked or deleted, or if the permission was removed (`removed`: by
    a scripted rule), PRODUCT_INVALID for a loan.
    """
    if "other" in named and not removed:
        cards = [card["status"].lower() for card in bank.documents.find(CARD, accountNumber=account["bban"])]
        removed = bool(cards) and {accounts.BLOCKED, accounts.DELETED}.issuperset(cards)
    if removed or account.get("paymentsRemoved") or account["status"] != accounts.ENABLED:
        raise BankError("FORBIDDEN", "The bank does not allow payments from this account.", "debtorAccount")
    if account["cashAccountType"] in NOT_PAYABLE:
        text = f"Payments from an account of the type {account['cashAccountType']} are not offered."
        raise BankError("PRODUCT_INVALID", text, "debtorAccount")


def _named(bank: Bank, named: Mapping[str, Any]) -> Account | None:
    if "other" not in named:
        return accounts.named(bank, named)
    # A credit card account is named by the account it is settled through (relatedAccount).
    reference, first = digits_of(named["other"]["identification"]), bank.documents.first
    account = first(ACCOUNT, bban=reference) or first(ACCOUNT, iban=reference)
    return None if account is None or first(CARD, accountNumber=account["bban"]) is None else account


def _drafts(
    bank: Bank, product: Product, initiation: Mapping[str, Any], cache: AccountCache, debtor: Account
) -> list[rules.PaymentDraft]:
    """The payment, or the entries of a bulk; BankError with the problems that all rules of the product report."""
    if "payments" not in initiation:
        drafts = [rules.PaymentDraft(bank, initiation, _creditor(bank, initiation, cache))]
    else:
        drafts = [
            rules.PaymentDraft(bank, entry, _creditor(bank, entry, cache), f"payments[{index}].")
            for index, entry in enumerate(initiation["payments"])
        ]
    problems: list[Message] = []
    if initiation["debtorAccount"]["currency"] != debtor["currency"]:
        problems.append(Message("FORMAT_ERROR", f"The account is in {debtor['currency']}.", "debtorAccount.currency"))
    refuses = product.verifies_payee and bank.settings.payee_check == "refuse"
    for draft in drafts:
        for check in product.checks:
            problems += check(draft)
        if refuses:
            problems += payee.refusals(draft)
    for check in product.whole:
        problems += check(rules.PaymentDraft(bank, initiation))
    if problems:
        raise BankError.several(problems)
    return drafts


def _price(
    bank: Bank, product: Product, drafts: list[rules.PaymentDraft], debtor: Account, script: Script, several: bool
) -> tuple[Price, list[BulkEntry] | None]:
    """The cost of the payment, and of each entry of a bulk; PAYMENT_FAILED if `funds_check` demands the money."""
    charge, currency, crosses_border = bank.exchange.charge, debtor["currency"], product.crosses_border
    total = fees = Decimal(0)
    entries: list[BulkEntry] = []
    price: Price = {"amount": ""}
    for index, draft in enumerate(drafts):
        scripted = script.fee if script.fee is None or index == 0 else "0"  # once for a bulk
        paid = draft.initiation["instructedAmount"]
        amount, fee, members = charge(paid["amount"], paid["currency"], currency, crosses_border, scripted)
        total += amount
        fees += fee
        price = {**members}
        if draft.creditor is not None:
            price["creditorAccountId"] = draft.creditor["id"]
        if several:
            entry: BulkEntry = {"status": settlement.OPEN, "amount": price["amount"]}
            entry.update(cast(BulkEntry, price))
            entries.append(entry)
    if bank.settings.funds_check == "initiation" and ledger.available(debtor) < total + fees:
        raise BankError("PAYMENT_FAILED", "There is not enough money on the account.", "debtorAccount")
    if not several:
        return price, None
    price = {"amount": plain(total, currency)}
    if fees:
        price["fee"] = plain(fees, currency)
    return price, entries


def agreement_for(bank: Bank, national_id: str, account: Account) -> str | None:
    """The first agreement under which a person may pay from an account, for a request that names none."""
    for agreement in people.agreements_of(bank, national_id):
        if people.may_pay_from(bank, national_id, people.CORPORATE, agreement["id"], account):
            return str(agreement["id"])
    return None


def check_register_limit(bank: Bank, payment: Payment) -> None:
    """Refuse a payment above the registerLimit of its customer's engagement: FORBIDDEN.

    Assumed: the limit applies to the sum, in the account's currency.
    """
    if payment["nationalId"] is None:
        return
    limit = engagement_limit(bank, payment, payment["nationalId"], "registerLimit")
    if limit is not None and Decimal(payment["amount"]) > limit:
        what, path = ("a bulk", "payments") if "entries" in payment else ("a payment", "instructedAmount.amount")
        text = f"Under this agreement {what} from this account must not exceed {limit} {payment['currency']}."
        raise BankError("FORBIDDEN", text, path)


def engagement_limit(
    bank: Bank, payment: Payment, national_id: str, name: Literal["registerLimit", "approvalLimit"]
) -> Decimal | None:
    """`registerLimit` or `approvalLimit` of the engagement that allows a person the payment; the highest of several."""
    agreement = bank.documents.get(AGREEMENT, payment["agreement"]) if payment["agreement"] else None
    if agreement is None:
        return None
    registering = people.engagements_for(bank, agreement, "REGISTER", national_id)
    engagements = [e for e in registering if e["accountId"] == payment["debtorAccountId"]]
    if not engagements or any(e.get(name) is None for e in engagements):
        return None
    return max(Decimal(str(e[name])) for e in engagements)


def _likeness(product: Product, order: PaymentOrder, debtor: Account, drafts: list[rules.PaymentDraft]) -> str:
    """A hash of the members that logical duplicates share: TPP, debtor, creditor, amount, reference."""
    parts: list[object] = [order.tpp_id, debtor["id"]]
    for draft in drafts:
        one, amount = draft.initiation, draft.initiation["instructedAmount"]
        creditor = draft.creditor or rules.creditor_ref(one, crosses_border=product.crosses_border)
        whole, _, fraction = amount["amount"].partition(".")
        parts.append(
            (
                creditor.get("iban") or digits_of(creditor["bban"]),
                (whole.lstrip("0"), fraction.rstrip("0")),  # 010.00 is 10.00
                amount["currency"],
                one.get("remittanceInformationUnstructured"),
                [reference["reference"] for _, reference in rules.structured_references(one)],
            )
        )
    return hashlib.blake2b(orjson.dumps(parts), digest_size=16).hexdigest()


def _refuse_duplicate(bank: Bank, payment: Payment, since: str) -> None:
    # Newest first: the first few of a thousand duplicates decide, unless they were all rejected or cancelled.
    for limit in (20, None):
        alike = bank.documents.find(PAYMENT, likeness=payment["likeness"], newest_first=True, limit=limit)
        for other in alike:
            if other["created"] <= since:
                return
            if other["status"] not in DEAD:
                text = "A payment like this one was made within the last 24 hours."
                raise BankError("CONFLICT", text, "allowLogicalDuplicate")


def warnings(bank: Bank, initiation: Mapping[str, Any]) -> list[Message]:
    """The WARNINGs in the answer to the creation of a payment."""
    messages = rules.deprecations(bank, initiation)
    if "dayOfExecution" in initiation and initiation["frequency"] in execution.DAYS:
        text = f"dayOfExecution has no effect with frequency {initiation['frequency']}, which counts from startDate."
        messages.append(Message("FORMAT_ERROR", text, "dayOfExecution", "WARNING"))
    return messages
