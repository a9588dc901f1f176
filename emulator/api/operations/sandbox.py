"""Sandbox data: accounts and card accounts with transactions, customers, agreements, engagements (sandbox-data.md).

Accounts, card accounts, customers and agreements have the same operations, made of a row for each (`_SandboxKind`); so
have the transactions of accounts and of card accounts (`_SandboxHistory`). The rows are below the functions that put
the answers together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from emulator.api.headers import SANDBOX
from emulator.api.operation import Call, Operation, Reply, operation
from emulator.api.operations.accounts import DEFAULT_LIMIT, OFFSET
from emulator.api.query import QueryParameter
from emulator.bank import fixtures
from emulator.bank.accounts import accounts, transactions
from emulator.bank.accounts.transactions import Window
from emulator.bank.bank import Bank
from emulator.bank.customers import people
from emulator.bank.documents import (
    Account,
    AccountRef,
    Agreement,
    Card,
    CardTransaction,
    Customer,
    Engagement,
    Transaction,
)
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CARD_TRANSACTION, CUSTOMER, TRANSACTION, EntryKind
from emulator.bank.money import plain
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox import booked_balance, like, list_entries, number_of
from emulator.bank.sandbox import customers as sandbox_customers
from emulator.store import Kind

if TYPE_CHECKING:
    from emulator.api.shapes import sandbox
    from emulator.api.shapes.parts import Links

_SHAPES = "emulator.api.shapes.sandbox"
_ACCOUNTS, _CARDS = "/v1/sandbox/accounts", "/v1/sandbox/card-accounts"
_CUSTOMERS, _AGREEMENTS = "/v1/sandbox/customers", "/v1/sandbox/agreements"
_ENGAGEMENTS = f"{_AGREEMENTS}/{{agreementId}}/engagements"
_INCLUDED = (
    QueryParameter("includeAccounts", "boolean", "Whether to include the customer's accounts", default=False),
    QueryParameter("includeAgreements", "boolean", "Whether to include the customer's own agreements", default=False),
)
_TRANSACTION_LIST = (
    QueryParameter("fromDate", "date", "The earliest date"),
    QueryParameter("toDate", "date", "The latest date", not_before="fromDate"),
    OFFSET,
    QueryParameter("limit", "int", "How many transactions are returned", minimum=1, default=DEFAULT_LIMIT),
)
_operation = partial(operation, column=SANDBOX, acts=False, tag="Sandbox", manual="sandbox-data")


# Operations


@dataclass(frozen=True, slots=True)
class _SandboxKind:
    """Documents that operations create, list, read, replace and delete.

    `name` ends the operationIds and the name of the body, `words` the summaries. `parameter` of the path and `member`
    of the answer have the id. `returned` describes the answer to a creation, `removed` what a deletion removes beside
    the document. `query`: of lists and reads.
    """

    name: str
    words: str
    path: str
    parameter: str
    member: str
    kind: Kind[Any]
    shown: Callable[[Call, Any], Any]
    create: Callable[[Bank, Any], Any]
    delete: Callable[[Bank, str], Iterator[object] | None]  # at once, or in steps
    removed: str
    replace: Callable[[Bank, str, Any], Any] | None = None
    returned: str = ""
    query: tuple[QueryParameter, ...] = ()


def _of_kind(of: _SandboxKind) -> Iterator[Operation]:
    name, noun, shape = f"Sandbox{of.name}", of.words.partition(" ")[2], of.shown.__annotations__["return"]
    one, body = f"{of.path}/{{{of.parameter}}}", f"{_SHAPES}:Posted{of.name}"

    def create(call: Call) -> Reply[Any]:
        return Reply(201, of.shown(call, of.create(call.bank, call.body)))

    def every(call: Call) -> Reply[Any]:
        listed = accounts.newest_first(call.bank.documents.all(of.kind))
        return Reply(200, [of.shown(call, document) for document in listed])

    def read(call: Call) -> Reply[Any]:
        return Reply(200, of.shown(call, call.bank.find(of.kind, call.params[of.parameter])))

    def delete(call: Call) -> Reply[None]:
        steps = of.delete(call.bank, call.params[of.parameter])
        return Reply(204, None) if steps is None else Reply.after(steps)

    of_one, of_all = partial(_operation, returns=shape), partial(_operation, returns=f"{shape}List")
    gives, removed = (of.parameter, of.member), f"Remove {of.words}{of.removed}."
    text = f"Create {of.words}.{of.returned}"
    yield of_one("POST", of.path, name=f"create{name}", text=text, body=body, gives=gives)(create)
    yield of_all("GET", of.path, name=f"list{name}s", text=f"All {noun}s.", query=of.query)(every)
    yield of_one("GET", one, name=f"get{name}", text=f"One {noun}.", query=of.query)(read)
    if (replace := of.replace) is not None:

        def update(call: Call) -> Reply[Any]:
            return Reply(200, of.shown(call, replace(call.bank, call.params[of.parameter], call.body)))

        yield of_one("PUT", one, name=f"update{name}", text=f"Replace {of.words}.", body=body)(update)
    yield _operation("DELETE", one, name=f"delete{name}", text=removed)(delete)


@dataclass(frozen=True, slots=True)
class _SandboxHistory:
    """The transactions of accounts or card accounts, which operations create, list, read and delete.

    `prefix` of the name of the body; `ids`: the members of a new one that are returned with the posted ones;
    `including`: what the listing has too.
    """

    of: _SandboxKind
    prefix: str
    kind: EntryKind
    shown: Callable[[Any, sandbox.OwnLink], Any]
    create: Callable[..., Sequence[Any]]
    find: Callable[[Bank, str, str], Any]
    ids: tuple[str, ...]
    including: str = ""
    manual: str = "sandbox-data"


def _of_history(own: _SandboxHistory) -> Iterator[Operation]:
    name, parameter = f"Sandbox{own.of.name}Transaction", own.of.parameter
    noun = "card transaction" if own.prefix else "transaction"
    path, shape = f"{own.of.path}/{{{parameter}}}/transactions", own.shown.__annotations__["return"]

    def links(call: Call, entry: Any) -> sandbox.OwnLink:
        return {"self": call.link(f"{own.of.path}/{call.params[parameter]}/transactions/{entry['id']}")}

    def create(call: Call) -> Reply[Any]:
        single = not isinstance(call.body, list)
        bodies = [call.body] if single else call.body
        entries = own.create(call.bank, call.params[parameter], bodies, single=single)
        shown = [
            {**body, **{member: entry[member] for member in own.ids}, "_links": links(call, entry)}
            for body, entry in zip(bodies, entries, strict=True)
        ]
        return Reply(201, shown[0] if single else shown)

    def every(call: Call) -> Reply[Any]:
        holder = call.bank.find(own.of.kind, call.params[parameter])
        first, last = call.query.get("fromDate"), call.query.get("toDate")
        asked = Window(first=first, last=last, offset=call.query["offset"], limit=call.query["limit"])
        entries = list_entries(call.bank, own.kind, holder["id"], asked)
        return Reply(200, [own.shown(entry, links(call, entry)) for entry in entries])

    def read(call: Call) -> Reply[Any]:
        holder = call.bank.find(own.of.kind, call.params[parameter])
        entry = own.find(call.bank, holder["id"], call.params["transactionId"])
        return Reply(200, own.shown(entry, links(call, entry)))

    def delete(call: Call) -> Reply[None]:
        return Reply.after(sandbox_accounts.deleting_transactions(call.bank, own.of.kind, call.params[parameter]))

    created = "From an array or one object; returns the posted members, each with `id` and `_links`."
    created = f"Create past {noun}s.\n\n{created}"
    listed = f"The transactions of {own.of.words}{own.including}.\n\nNewest first."
    removed = f"Remove the transactions of {own.of.words}."
    one, body = f"{path}/{{transactionId}}", f"{_SHAPES}:Posted{own.prefix}Transactions"
    several = partial(_operation, returns=f"{shape}List", query=_TRANSACTION_LIST, manual=own.manual)
    yield _operation("POST", path, name=f"create{name}s", text=created, returns=f"{shape}s", body=body)(create)
    yield several("GET", path, name=f"list{name}s", text=listed)(every)
    yield _operation("GET", one, name=f"get{name}", text=f"One {noun}.", returns=shape)(read)
    yield _operation("DELETE", path, name=f"delete{name}s", text=removed)(delete)


# Answers


def _account(call: Call, account: Account) -> sandbox.SandboxAccount:
    """The account in answers: the posted members, with the current balance."""
    posted = account.get("posted", {})
    shown: sandbox.SandboxAccount = {
        "customerNumber": number_of(call.bank, account["customerId"]),
        "accountName": account["name"],
        "bban": account["bban"],
        "iban": account["iban"],
        "currency": account["currency"],
        "product": account["product"],
        "cashAccountType": posted.get("cashAccountType", account["cashAccountType"]),
        "creditLine": sandbox_accounts.credit_line(account),
        "balances": _balances(posted.get("balances"), account["booked"], account["currency"]),
        "id": account["id"],
        "_links": _links(call, f"{_ACCOUNTS}/{account['id']}"),
    }
    if "status" in posted or account["status"] != accounts.ENABLED:
        shown["status"] = account["status"]
    if account.get("owners"):
        shown["owners"] = [number_of(call.bank, owner) for owner in account["owners"]]
    return shown


def _balances(
    posted: Sequence[sandbox.PostedBalance] | None, booked: str, currency: str
) -> list[sandbox.PostedBalance]:
    """The balances of an account or card: as posted, or after bookings the posted types with the booked amount."""
    if not posted:
        return [{"balanceType": "closingBooked", "balanceAmount": {"amount": booked, "currency": currency}}]
    if plain(booked_balance(posted), currency) == booked:
        return list(posted)
    return [
        {
            **balance,
            "balanceAmount": {"amount": like(balance["balanceAmount"]["amount"], booked), "currency": currency},
        }
        for balance in posted
    ]


def _links(call: Call, path: str) -> Links:
    return {
        "self": call.link(path, "GET", "PUT", "DELETE"),
        "transactions": call.link(f"{path}/transactions", "GET", "POST", "DELETE"),
    }


def _card(call: Call, card: Card) -> sandbox.SandboxCardAccount:
    """The card account in answers: the posted members, with the current balance."""
    posted = card.get("posted", {})
    return {
        "customerNumber": number_of(call.bank, card["customerId"]),
        "maskedPan": card["maskedPan"],
        "currency": card["currency"],
        "creditLimit": posted.get("creditLimit", card["creditLimit"]),
        "balances": _balances(posted.get("balances"), card["booked"], card["currency"]),
        "cardId": card.get("cardId", ""),
        "cardIdVNo": card.get("cardIdVNo", ""),
        "accountNumber": card.get("accountNumber", ""),
        "expiry": card.get("expiry", ""),
        "name": card["name"],
        "product": card["product"],
        "status": card["status"],
        "resourceId": card["id"],
        "_links": _links(call, f"{_CARDS}/{card['id']}"),
    }


def _transaction(transaction: Transaction, links: sandbox.OwnLink) -> sandbox.SandboxTransaction:
    """A transaction as sandbox listings show it: whole currency units, absent text is ``""``."""
    return {
        "id": transaction["id"],
        "amount": sandbox_accounts.whole_units(transaction["amount"]),
        "currency": transaction["currency"],
        "valueDate": transaction.get("valueDate") or "",
        "remittanceInformationUnstructured": transaction.get("remittanceInformationUnstructured") or "",
        "creditorName": transaction.get("creditorName") or "",
        "creditorAccount": _both_numbers(transaction.get("creditorAccount")),
        "debtorName": transaction.get("debtorName") or "",
        "debtorAccount": _both_numbers(transaction.get("debtorAccount")),
        "bankTransactionCode": transaction.get("bankTransactionCode") or "",
        "ultimateDebtor": transaction.get("ultimateDebtor") or "",
        "ultimateCreditor": transaction.get("ultimateCreditor") or "",
        "purposeCode": transaction.get("purposeCode") or "",
        "bookingDate": transaction.get("bookingDate") or "",
        "_links": links,
    }


def _both_numbers(reference: AccountRef | None) -> sandbox.BothNumbers:
    reference = reference or {}
    return {"iban": reference.get("iban") or "", "bban": reference.get("bban") or ""}


def _card_transaction(entry: CardTransaction, links: sandbox.OwnLink) -> sandbox.SandboxCardTransaction:
    shown: Any = {"id": entry["id"], **accounts.entry_view(entry, swapped=False), "_links": links}
    return cast("sandbox.SandboxCardTransaction", shown)  # most of its members come from a table in `accounts`


def _customer(call: Call, customer: Customer) -> sandbox.SandboxCustomer:
    """The customer in answers, with its members in the order that clients of hosted sandboxes know."""
    links = {"self": call.link(f"{_CUSTOMERS}/{customer['id']}", "GET", "PUT", "DELETE")}
    shown: sandbox.SandboxCustomer = {
        "customerId": customer["id"],
        "customerNumber": customer["customerNumber"],
        "customerType": customer["type"],
        "customerName": customer["name"],
        "_links": links,
    }
    documents = call.bank.documents
    if call.query.get("includeAccounts"):
        own = accounts.newest_first(people.accounts_owned(call.bank, customer["id"]))
        shown["accounts"] = [_account(call, account) for account in own]
    if call.query.get("includeAgreements"):
        owned = accounts.newest_first(documents.find(AGREEMENT, owner=customer["id"]))
        shown["agreements"] = [_agreement(call, agreement) for agreement in owned]
    return shown


def _agreement(call: Call, agreement: Agreement) -> sandbox.SandboxAgreement:
    """The agreement in answers; `owner` is a customerNumber."""
    path = f"{_AGREEMENTS}/{agreement['id']}"
    engagements = sandbox_customers.engagements(call.bank, agreement)
    shown: sandbox.SandboxAgreement = {
        "agreementId": agreement["id"],
        "owner": number_of(call.bank, agreement["owner"]),
        "name": agreement["name"],
        "engagements": [_engagement(call, agreement["id"], engagement) for engagement in engagements],
        "_links": {
            "self": call.link(path, "GET", "DELETE"),
            "engagements": call.link(f"{path}/engagements", "GET", "POST"),
        },
    }
    if agreement["signatures"] > 1:
        shown["signatures"] = agreement["signatures"]
    return shown


def _engagement(call: Call, agreement_id: str, engagement: Engagement) -> sandbox.SandboxEngagement:
    path = f"{_AGREEMENTS}/{agreement_id}/engagements/{engagement['id']}"
    own = call.link(path) if engagement.get("joined") else call.link(path, "GET", "DELETE")
    shown: sandbox.SandboxEngagement = {
        "engagementId": engagement["id"],
        "customer": number_of(call.bank, engagement["customer"]),
        "account": {"iban": engagement["iban"]},
        "roles": engagement["roles"],
        "_links": {"self": own},
    }
    for name in sandbox_customers.LIMITS:
        if name in engagement:
            shown[name] = engagement[name]
    return shown


_ACCOUNT = _SandboxKind(
    "Account",
    "an account",
    _ACCOUNTS,
    "mockAccountId",
    "id",
    ACCOUNT,
    _account,
    create=sandbox_accounts.create_account,
    replace=sandbox_accounts.replace_account,
    delete=lambda bank, identity: sandbox_accounts.deleting(bank, ACCOUNT, identity),
    returned="\n\nReturns the posted members, `id` and `_links`.",
    removed=" and everything that depends on it",
)
_CARD = _SandboxKind(
    "CardAccount",
    "a card account",
    _CARDS,
    "mockCardAccountId",
    "resourceId",
    CARD,
    _card,
    create=sandbox_accounts.create_card,
    replace=sandbox_accounts.replace_card,
    delete=lambda bank, identity: sandbox_accounts.deleting(bank, CARD, identity),
    returned="\n\nReturns the posted members, `resourceId` and `_links`.",
    removed=" and its transactions",
)
_CUSTOMER = _SandboxKind(
    "Customer",
    "a customer",
    _CUSTOMERS,
    "customerId",
    "customerId",
    CUSTOMER,
    _customer,
    create=sandbox_customers.create_customer,
    replace=sandbox_customers.replace_customer,
    delete=sandbox_customers.deleting_customer,
    removed=" and everything that depends on it",
    query=_INCLUDED,
)
_AGREEMENT = _SandboxKind(
    "Agreement",
    "an agreement",
    _AGREEMENTS,
    "agreementId",
    "agreementId",
    AGREEMENT,
    _agreement,
    create=sandbox_customers.create_agreement,
    delete=sandbox_customers.delete_agreement,
    removed=".\n\nThe consents and sessions under it are removed too",
)
_TRANSACTIONS = _SandboxHistory(
    _ACCOUNT,
    "",
    TRANSACTION,
    _transaction,
    create=sandbox_accounts.create_transactions,
    find=transactions.stored,
    ids=("id",),
    including=", including those of payments",
    manual="sandbox-data#transactions-of-the-sandbox",
)
_CARD_TRANSACTIONS = _SandboxHistory(
    _CARD,
    "Card",
    CARD_TRANSACTION,
    _card_transaction,
    create=sandbox_accounts.create_card_transactions,
    find=sandbox_accounts.find_card_transaction,
    ids=("cardTransactionId", "id"),
)

OF_ACCOUNTS = (*_of_kind(_ACCOUNT), *_of_history(_TRANSACTIONS), *_of_kind(_CARD), *_of_history(_CARD_TRANSACTIONS))


@_operation("POST", "/v1/sandbox/initialize", statuses=(200,))
def initialize_sandbox(call: Call) -> Reply[sandbox.SandboxCustomers]:
    """Restore the known state.

    Returns `{customers}`.
    """
    prepared, call.request.prepared = call.request.prepared, None
    fixtures.initialize(call.bank, prepared)
    every = accounts.newest_first(call.bank.documents.all(CUSTOMER))
    return Reply(200, {"customers": [_customer(call, one) for one in every]})


OF_CUSTOMERS = (*_of_kind(_CUSTOMER), *_of_kind(_AGREEMENT))


@_operation("POST", _ENGAGEMENTS, gives=("engagementId", "engagementId"), body=f"{_SHAPES}:PostedEngagement")
def create_sandbox_engagement(call: Call) -> Reply[sandbox.SandboxEngagement]:
    """Add an engagement to an agreement."""
    engagement = sandbox_customers.add_engagement(call.bank, call.params["agreementId"], call.body)
    return Reply(201, _engagement(call, call.params["agreementId"], engagement))


@_operation("GET", _ENGAGEMENTS)
def list_sandbox_engagements(call: Call) -> Reply[sandbox.SandboxEngagementList]:
    """The engagements of an agreement."""
    agreement = call.bank.find(AGREEMENT, call.params["agreementId"])
    listed = sandbox_customers.engagements(call.bank, agreement)
    return Reply(200, [_engagement(call, agreement["id"], engagement) for engagement in listed])


@_operation("GET", f"{_ENGAGEMENTS}/{{engagementId}}")
def get_sandbox_engagement(call: Call) -> Reply[sandbox.SandboxEngagement]:
    """One engagement."""
    engagement = sandbox_customers.find_engagement(call.bank, call.params["agreementId"], call.params["engagementId"])
    return Reply(200, _engagement(call, call.params["agreementId"], engagement))


@_operation("DELETE", f"{_ENGAGEMENTS}/{{engagementId}}")
def delete_sandbox_engagement(call: Call) -> Reply[None]:
    """Remove an engagement."""
    sandbox_customers.delete_engagement(call.bank, call.params["agreementId"], call.params["engagementId"])
    return Reply(204, None)
