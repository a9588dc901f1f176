"""Documents made from definitions: what a fixture, or a scenario's `add`, turns into.

Nothing here is drawn at random and nothing depends on the time of day, only on the Oslo date: the same definitions
on the same date give the same documents, ids included (CONTRACT 9.1, reset).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from emulator.bank.customers import people
from emulator.bank.founding.entries import (
    Days,
    DefinitionError,
    Path,
    account_entry,
    card_entry,
    domestic_iban,
    exact,
    occurrences,
)
from emulator.bank.founding.forms import balance_of, own_terms
from emulator.bank.holdings.accounts import BIC, usage
from emulator.bank.ids import fixed_id
from emulator.bank.money import plain
from emulator.store import Document

if TYPE_CHECKING:
    from emulator.bank.founding import definitions as d

Lookup = Callable[[str, str, str], Sequence[Document]]


def _nothing(_kind: str, _index: str, _value: str) -> Sequence[Document]:
    return ()


class Founding:
    """Documents in the making.

    `today`: the Oslo date of bank time; `fixed`: the id for a name; `known`: finds the documents that the bank already
    has, by kind, index and value (a scenario adds to what is there); `fresh`: new ids where the bank already has
    documents: for transactions, which have no name of their own, and for what would have an id that is in use.
    """

    def __init__(
        self,
        *,
        today: date,
        fixed: Callable[[str], str],
        known: Lookup = _nothing,
        fresh: Callable[[], str] | None = None,
    ) -> None:
        self._days = Days(today)
        self._fixed = fixed
        self._there = known
        self._fresh = fresh
        self._numbers: dict[str, Document] = {}
        self._accounts: dict[str, Document] = {}
        self.documents: dict[str, dict[str, Document]] = {}

    def add(self, definitions: d.Additions) -> dict[str, dict[str, Document]]:
        """The documents of `definitions` by kind and id, with those that they changed; raises DefinitionError."""
        for index, person in enumerate(definitions.people):
            self._put("person", {"id": person.national_id, "name": person.name}, ("people", index))
        for index, customer in enumerate(definitions.customers):
            self._customer(customer, ("customers", index))
        for index, account in enumerate(definitions.accounts):
            self._account(account, ("accounts", index))
        for index, card in enumerate(definitions.cards):
            self._card(card, ("cards", index))
        for index, agreement in enumerate(definitions.agreements):
            self._agreement(agreement, ("agreements", index))
        for index, transaction in enumerate(definitions.transactions):
            account_document = self._account_named(transaction.account, ("transactions", index, "account"))
            self._entries(account_document, [transaction], ("transactions",), first=index)
        return self.documents

    # documents and references

    def _put(self, kind: str, document: Document, path: Path) -> Document:
        documents = self.documents.setdefault(kind, {})
        identity = document["id"]
        if identity in documents or self._known(kind, "id", identity):
            raise DefinitionError(path, f"This {kind} is there already.")
        documents[identity] = document
        return document

    def _known(self, kind: str, index: str, value: str) -> Document | None:
        return next(iter(self._there(kind, index, value)), None)

    def _id_of(self, kind: str, number: str) -> str:
        """The id of a customer or account whose number is free: another where one that had the number has it still."""
        identity = self._fixed(f"{kind}:{number}")
        return self._fresh() if self._fresh is not None and self._known(kind, "id", identity) else identity

    def _id_among(self, kind: str, member: str, owner: Document, name: str, fixed: Callable[[str], str]) -> str:
        """The id of what an owner calls so: another where it is one's who had the owner's number before."""
        identity = fixed(f"{kind}:{owner['customerNumber']}:{name}")
        there = self._known(kind, "id", identity)
        return identity if there is None or there[member] == owner["id"] else fixed(f"{kind}:{owner['id']}:{name}")

    def _customer_numbered(self, number: str, path: Path) -> Document:
        found = self._numbers.get(number) or self._known("customer", "customerNumber", number)
        if found is None:
            raise DefinitionError(path, f"The number of a customer was expected, and there is no customer {number}.")
        return found

    def _account_named(self, name: str, path: Path) -> Document:
        found = self._accounts.get(name)
        if found is None:
            found = self._known("account", "iban", name) or self._known("account", "bban", name)
            if found is None:
                raise DefinitionError(path, f"The IBAN or BBAN of an account was expected, and there is no {name}.")
            self._remember(found)
        return found

    def _remember(self, account: Document) -> None:
        self._accounts[account["iban"]] = self._accounts[account["bban"]] = account

    def _changed(self, account: Document) -> None:
        self.documents.setdefault("account", {})[account["id"]] = account

    # customers and agreements

    def _customer(self, definition: d.Customer, path: Path) -> None:
        number = definition.customer_number
        if number in self._numbers or self._known("customer", "customerNumber", number):
            raise DefinitionError((*path, "customerNumber"), f"There is a customer {number} already.")
        document = {
            "id": self._id_of("customer", number),
            "customerNumber": number,
            "type": definition.type,
            "name": definition.name,
        }
        if definition.organisation_number is not None:
            document["organisationNumber"] = definition.organisation_number
        self._numbers[number] = self._put("customer", document, path)
        known_person = number in self.documents.get("person", {}) or self._known("person", "id", number)
        if definition.type == "private" and not known_person:
            self._put("person", {"id": number, "name": definition.name}, path)

    def _agreement(self, definition: d.Agreement, path: Path) -> None:
        owner = self._customer_numbered(definition.owner, (*path, "owner"))
        # psuCorporateId is a UUID whatever `--ids` says (CONTRACT 13).
        identity = self._id_among("agreement", "owner", owner, definition.name, fixed_id)
        document: Document = {
            "id": identity,
            "owner": owner["id"],
            "name": definition.name,
            "signatures": definition.signatures,
            "persons": self._acting(definition, owner, path),
            "engagements": [],
        }
        self._engage(document, definition, owner, path)
        document["accounts"] = list(dict.fromkeys(e["accountId"] for e in document["engagements"]))
        if definition.signatures > len(document["persons"]):
            raise DefinitionError((*path, "signatures"), "Two signatures need two persons.")
        number = definition.organisation_number or owner.get("organisationNumber")
        if number is not None:
            document["organisationNumber"] = number
        self._put("agreement", document, path)

    def _acting(self, definition: d.Agreement, owner: Document, path: Path) -> list[str]:
        """The persons whom the agreement names, a private owner first."""
        for index, number in enumerate(definition.persons):
            if not self._is_person(number):
                expected = f"The nationalId of one of `people` or of a private customer was expected, not {number}."
                raise DefinitionError((*path, "persons", index), expected)
        own = [owner["customerNumber"]] if owner["type"] == "private" else []
        return list(dict.fromkeys([*own, *definition.persons]))

    def _is_person(self, number: str) -> bool:
        """Whether it is one of the people, or a private customer, who need not be listed among them."""
        if number in self.documents.get("person", {}) or self._known("person", "id", number):
            return True
        customer = self._known("customer", "customerNumber", number)
        return customer is not None and customer["type"] == "private"

    def _engage(self, agreement: Document, definition: d.Agreement, owner: Document, path: Path) -> None:
        # A private owner's accounts join by themselves (CONTRACT 8; people.accounts_of).
        if definition.engagements is None and owner["type"] == "corporate":
            held = {account["id"]: account for account in self._there("account", "customerId", owner["id"])}
            held |= {a["id"]: a for a in self.documents.get("account", {}).values() if a["customerId"] == owner["id"]}
            for account in held.values():
                self._engagement(agreement, account, owner)
        for index, engagement in enumerate(definition.engagements or ()):
            self._defined_engagement(agreement, engagement, owner, (*path, "engagements", index))

    def _engagement(self, agreement: Document, account: Document, customer: Document) -> Document:
        engagement = {
            "id": self._fixed(f"engagement:{agreement['id']}:{len(agreement['engagements'])}"),
            "customer": customer["id"],
            "accountId": account["id"],
            "iban": account["iban"],
            "roles": ["VIEW", "REGISTER"],
        }
        agreement["engagements"].append(engagement)
        people.admit(agreement, engagement, customer)
        return engagement

    def _defined_engagement(self, agreement: Document, definition: d.Engagement, owner: Document, path: Path) -> None:
        account = self._account_named(definition.account, (*path, "account"))
        customer = owner
        if definition.customer is not None:
            customer = self._customer_numbered(definition.customer, (*path, "customer"))
        engagement = self._engagement(agreement, account, customer)
        engagement["roles"] = list(dict.fromkeys(definition.roles))
        limits = {"registerLimit": definition.register_limit, "approvalLimit": definition.approval_limit}
        for name, limit in limits.items():
            if limit is not None:
                engagement[name] = exact(limit, account["currency"], (*path, name))

    # accounts and cards

    def _account(self, definition: d.Account, path: Path) -> None:
        owner = self._customer_numbered(definition.customer_number, (*path, "customerNumber"))
        bban, currency = definition.bban, definition.currency
        iban = definition.iban or domestic_iban(bban)
        if iban is None:
            raise DefinitionError((*path, "iban"), "An IBAN was expected; only 11 digits give one by themselves.")
        for name, index in ((bban, "bban"), (iban, "iban")):
            if name in self._accounts or self._known("account", index, name):
                raise DefinitionError((*path, index), f"There is an account {name} already.")
        balance = exact(balance_of(definition, path), currency, (*path, "balance"))
        account = {
            "id": self._id_of("account", bban),
            "customerId": owner["id"],
            "bban": bban,
            "iban": iban,
            "currency": currency,
            "name": definition.account_name,
            "product": definition.product,
            "cashAccountType": definition.cash_account_type,
            "bic": BIC,
            "usage": usage(owner),
            "status": "enabled",
            "creditLine": exact(definition.credit_line, currency, (*path, "creditLine")),
            "opening": balance,
            "booked": balance,
            "reserved": plain(Decimal(0), currency),
            "lastChange": self._days.at(self._days.on(-1)),
        }
        if definition.demands_kid:
            account["demandsKid"] = True
        self._remember(self._put("account", account, path))
        self._entries(account, definition.transactions, (*path, "transactions"))

    def _entries(self, account: Document, definitions: Sequence[d.Transaction], path: Path, *, first: int = 0) -> None:
        """The transactions of an account: the balance stays, the opening balance is what was there before them."""
        owner = self.documents.get("customer", {}).get(account["customerId"])
        owner = owner or self._known("customer", "id", account["customerId"]) or account
        opening = Decimal(account["opening"])
        made = []
        for index, definition in enumerate(definitions, first):
            inner = (*path, index)
            told = own_terms(definition, account["currency"], inner)
            for number, (day, amount) in enumerate(occurrences(told, inner)):
                entry = account_entry(account, owner["name"], told, day, amount, days=self._days, path=inner)
                made.append({"id": self._entry_id(account["id"], index, number), **entry})
                if entry["status"] == "booked":
                    opening -= Decimal(entry["amount"])
        # Oldest first, as if they had been booked one after the other.
        for transaction in sorted(made, key=_order):
            self._put("transaction", transaction, path)
        account["opening"] = plain(opening, account["currency"])
        self._changed(account)

    def _entry_id(self, holder: str, index: int, number: int) -> str:
        return self._fresh() if self._fresh is not None else self._fixed(f"entry:{holder}:{index}:{number}")

    def _card(self, definition: d.Card, path: Path) -> None:
        owner = self._customer_numbered(definition.customer_number, (*path, "customerNumber"))
        currency = definition.currency
        card = {
            "id": self._id_among("card", "customerId", owner, definition.masked_pan, self._fixed),
            "customerId": owner["id"],
            "maskedPan": definition.masked_pan,
            "currency": currency,
            "name": definition.name,
            "product": definition.product,
            "status": "enabled",
            "usage": usage(owner),
            "creditLimit": exact(definition.credit_limit, currency, (*path, "creditLimit")),
            "booked": exact(definition.balance, currency, (*path, "balance")),
            "lastChange": self._days.at(self._days.on(-1)),
        }
        if definition.account is not None:
            related = self._account_named(definition.account, (*path, "account"))
            card["accountNumber"] = related["bban"]
        self._put("card", card, path)
        made = []
        for index, transaction in enumerate(definition.transactions):
            inner = (*path, "transactions", index)
            for number, (day, amount) in enumerate(occurrences(transaction, inner)):
                identity = self._entry_id(str(card["id"]), index, number)
                entry = card_entry(card, transaction, day, amount, days=self._days, path=inner)
                made.append({"id": identity, "cardTransactionId": identity, **entry})
        for document in sorted(made, key=_order):
            self._put("cardTransaction", document, path)


def _order(document: Document) -> str:
    return str(document["order"])
