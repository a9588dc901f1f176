"""A small bank for the payments tests: two private customers, one firm with a two-signature agreement."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from emulator.bank import products
from emulator.bank.accounts import ledger
from emulator.bank.authentication import sca_control
from emulator.bank.authentication.authorisations import Approach
from emulator.bank.bank import Bank
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER, KINDS, PAYMENT, PERSON, TRANSACTION
from emulator.bank.payment import baskets, initiation, payments, progression
from emulator.bank.payment.initiation import Script
from emulator.store import Document, memory_store
from tests.known_state import EVEN, KARI, SIRI, TOR

TPP = "PSDNO-FSA-000001"
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)  # a Monday, 09:00 in Oslo
BIC = "BEMUNO22XXX"
FIRM_AGREEMENT = "5a3c9f10-0000-4000-8000-000000000001"
FIRM: dict[str, Any] = {"who": SIRI, "context": "CORPORATE", "agreement": FIRM_AGREEMENT}  # who orders for the firm

STRAKS = ("payments", "instant-norwegian-domestic-credit-transfers-straks")
DOMESTIC = ("payments", "norwegian-domestic-credit-transfers")
SEPA = ("payments", "sepa-credit-transfers")
CROSS_BORDER = ("payments", "cross-border-credit-transfers")
PERIODIC = ("periodic-payments", "norwegian-domestic-credit-transfers")
BULK = ("bulk-payments", "norwegian-domestic-credit-transfers")

ELSEWHERE = "99921000010"  # a right account number that this bank does not hold
GERMAN = "DE19999999990000123456"

# id, customer, bban, iban, currency, balance
ACCOUNTS = (
    ("kari", "c-kari", "99901000014", "NO8599901000014", "NOK", "10000.00"),
    ("kari-card", "c-kari", "99901000022", "NO6399901000022", "NOK", "1000.00"),
    ("even", "c-even", "99901100019", "NO4299901100019", "NOK", "500.00"),
    ("even-eur", "c-even", "99901100027", "NO2099901100027", "EUR", "800.00"),
    ("firm", "c-firm", "99911000012", "NO2799911000012", "NOK", "50000.00"),
    ("firm-kid", "c-firm", "99911000020", "NO0599911000020", "NOK", "0.00"),
)


def build(**settings: Any) -> Bank:
    """The bank, its clock standing at NOW."""
    bank = Bank(memory_store(KINDS), seed=7)
    payments.attach(bank)
    baskets.attach(bank)
    bank.clock.set(now=NOW, mode="frozen")
    put = bank.documents.put
    for number, name, kind in ((KARI, "Kari Kladd", "private"), (EVEN, "Even Eksempel", "private")):
        put(CUSTOMER, {"id": f"c-{name.split()[0].lower()}", "customerNumber": number, "type": kind, "name": name})
        put(PERSON, {"id": number, "name": name})
    put(CUSTOMER, {"id": "c-firm", "customerNumber": "310001007", "type": "corporate", "name": "Prøvebakeriet AS"})
    put(PERSON, {"id": SIRI, "name": "Siri Skisse"})
    put(PERSON, {"id": TOR, "name": "Tor Testmann"})
    for account_id, customer, bban, iban, currency, balance in ACCOUNTS:
        put(ACCOUNT, _account(account_id, customer, bban, iban, currency, balance))
    firm_kid = bank.documents.get(ACCOUNT, "firm-kid") or {}
    put(ACCOUNT, {**firm_kid, "demandsKid": True})
    put(
        CARD,
        {
            "id": "card-1",
            "customerId": "c-kari",
            "accountNumber": (bank.documents.get(ACCOUNT, "kari-card") or {})["bban"],
            "status": "enabled",
        },
    )
    agree(bank)
    if settings:
        bank.change_settings(settings)
    return bank


def _account(account_id: str, customer: str, bban: str, iban: str, currency: str, balance: str) -> Document:
    return {
        "id": account_id,
        "customerId": customer,
        "bban": bban,
        "iban": iban,
        "currency": currency,
        "name": "Brukskonto",
        "product": "Brukskonto",
        "cashAccountType": "CACC",
        "bic": BIC,
        "usage": "PRIV",
        "status": "enabled",
        "creditLine": "0.00",
        "opening": balance,
        "booked": balance,
        "reserved": "0.00",
        "lastChange": "2026-03-01T00:00:00.000000+00:00",
    }


def agree(bank: Bank, *, signatures: int = 1, persons: tuple[str, ...] = (SIRI, TOR), **limits: str) -> None:
    """The firm's agreement, replaced; `limits`: registerLimit, approvalLimit of every engagement."""
    engagements = [
        {"id": f"e-{a}", "customer": "c-firm", "accountId": a, "iban": "", "roles": ["VIEW", "REGISTER"], **limits}
        for a in ("firm", "firm-kid")
    ]
    bank.documents.put(
        AGREEMENT,
        {
            "id": FIRM_AGREEMENT,
            "owner": "c-firm",
            "name": "Nettbank bedrift",
            "signatures": signatures,
            "persons": list(persons),
            "engagements": engagements,
            "accounts": ["firm", "firm-kid"],
        },
    )


def money(bank: Bank, account_id: str) -> tuple[Decimal, Decimal]:
    """Booked and reserved."""
    account = bank.documents.get(ACCOUNT, account_id) or {}
    return Decimal(account["booked"]), Decimal(account["reserved"])


def give(bank: Bank, account_id: str, amount: str) -> None:
    """Money from outside arrives on an account."""
    ledger.book(bank, account_id, {"amount": amount, "remittanceInformationUnstructured": "from outside"})


def entries(bank: Bank, account_id: str, status: str = "booked") -> list[Document]:
    """An account's transactions, oldest first."""
    return bank.documents.range(TRANSACTION, "shelf", group=f"{account_id}|{status}")


def domestic(amount: str = "100.00", *, to: str = ELSEWHERE, currency: str = "NOK", **more: Any) -> dict[str, Any]:
    """A domestic (or straks) initiation from Kari's account."""
    return {
        "instructedAmount": {"amount": amount, "currency": currency},
        "creditorName": "Takstein Utleie AS",
        "creditorAccount": {"bban": to, "currency": "NOK"},
        "creditorAddress": {"country": "NO"},
        "debtorAccount": {"bban": "99901000014", "currency": "NOK"},
        **more,
    }


def from_firm(amount: str = "100.00") -> dict[str, Any]:
    return domestic(amount, debtorAccount={"bban": "99911000012", "currency": "NOK"})


def sepa(amount: str = "10.00", *, to: str = GERMAN, **more: Any) -> dict[str, Any]:
    """A SEPA initiation from Even's account in EUR."""
    return {
        "instructedAmount": {"amount": amount, "currency": "EUR"},
        "creditorName": "Muster Verlag GmbH",
        "creditorAccount": {"iban": to, "currency": "EUR"},
        "debtorAccount": {"iban": "NO2099901100027", "currency": "EUR"},
        **more,
    }


def bulk(*amounts: str, debtor: str = "99901000014", **more: Any) -> dict[str, Any]:
    """A bulk with an entry for each amount."""
    entries = []
    for amount in amounts:
        entry = domestic(amount)
        del entry["debtorAccount"]
        entries.append(entry)
    return {"debtorAccount": {"bban": debtor, "currency": "NOK"}, "payments": entries, **more}


def initiate(
    bank: Bank,
    product: tuple[str, str],
    body: dict[str, Any],
    *,
    who: str | None = KARI,
    context: str = "PRIVATE",
    agreement: str | None = None,
    allow_duplicate: bool = True,
    script: Script | None = None,
    tpp: str = TPP,
) -> str:
    """Initiate and return the payment's id."""
    order = initiation.PaymentOrder(
        tpp_id=tpp,
        initiation=body,
        approach=Approach(redirectUri="https://tpp.example/back"),
        national_id=who,
        context=context,
        agreement=agreement,
        allow_duplicate=allow_duplicate,
        script=script or Script(),
    )
    with bank.documents.transaction():
        return str(initiation.initiate(bank, products.find(*product), order)["id"])


def approve(bank: Bank, target: str, who: str = KARI) -> str | None:
    """The customer approves the newest open SCA of a payment or basket; the redirect."""
    with bank.documents.transaction():
        return sca_control.approve(bank, sca_control.find(bank, target), national_id=who)


def authorise(bank: Bank, payment_id: str, who: str = KARI) -> None:
    """A further authorisation of a payment, approved."""
    with bank.documents.transaction():
        payments.start_authorisation(
            bank, payment(bank, payment_id), Approach(redirectUri="https://tpp.example"), national_id=who
        )
    approve(bank, payment_id, who)


def reject(bank: Bank, target: str) -> str:
    """The customer declines."""
    with bank.documents.transaction():
        return sca_control.reject(bank, sca_control.find(bank, target))


def advance(bank: Bank, **by: float) -> None:
    """Move bank time and apply what falls due."""
    bank.clock.advance(timedelta(**by))
    progression.run_due(bank)


def to(bank: Bank, at: datetime) -> None:
    """Set bank time and apply what falls due."""
    bank.clock.set(now=at)
    progression.run_due(bank)


def payment(bank: Bank, payment_id: str) -> Document:
    document = bank.documents.get(PAYMENT, payment_id)
    if document is None:
        raise LookupError(payment_id)
    return document


def status(bank: Bank, payment_id: str) -> str:
    return str(payment(bank, payment_id)["status"])


def life(bank: Bank, payment_id: str) -> list[tuple[str, float]]:
    """The statuses of a payment, each with the seconds since NOW."""
    history = payment(bank, payment_id)["history"]
    return [(one["status"], (datetime.fromisoformat(one["at"]) - NOW).total_seconds()) for one in history]


def paid(bank: Bank, product: tuple[str, str], initiation: dict[str, Any], **more: Any) -> str:
    """Initiate and approve at once; the payment's id."""
    payment_id = initiate(bank, product, initiation, **more)
    approve(bank, payment_id, more.get("who") or KARI)
    return payment_id
