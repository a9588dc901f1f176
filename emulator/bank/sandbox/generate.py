"""Generates customers, accounts and transactions, to fill a bank with 10 or 100,000 customers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from datetime import date
from functools import partial
from itertools import accumulate, chain, islice
from random import Random
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from emulator.bank.accounts import ledger
from emulator.bank.accounts.accounts import BIC, own_side, usage
from emulator.bank.bank import Bank, progress_event
from emulator.bank.customers import people
from emulator.bank.documents import Account, Agreement, Customer, Person, Transaction, TransactionDetails
from emulator.bank.errors import BankError
from emulator.bank.ids import Ids, fixed_id
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CUSTOMER, PERSON, TRANSACTION
from emulator.bank.reference import (
    iban_of,
    synthetic_account_number,
    synthetic_national_number,
    synthetic_organisation_number,
)
from emulator.bank.sandbox import accounts as sandbox_accounts
from emulator.bank.sandbox import shortening
from emulator.bank.sandbox.patterns import Move, Period, Pools, company, household, interest, saving, transfer_code
from emulator.bank.validation import Mismatch, Model, refuse
from emulator.store import Kind

MOST_DRAWS = 10_000  # attempts to draw an unused number: all of them fail only if almost no number is left
BATCH = 1_000  # transactions in one change of the store, and in a piece
DRAWN = 5_000  # transactions drawn in a piece
COMPANIES = 4  # one in this many customers is a company
MOST_TRANSACTIONS = 1_000_000
MOST_ACCOUNTS = 200_000


class DataPlan(Model):
    """The amounts to generate; `seed` null: different data every time (unless the bank has a seed).

    `transactionsPerAccount` is an average: a customer's savings accounts have a few, the first account has the others.
    """

    customers: Annotated[int, Field(ge=1, le=100_000)] = 10
    accounts_per_customer: Annotated[int, Field(ge=1, le=100)] = 2
    transactions_per_account: Annotated[int, Field(ge=0, le=MOST_TRANSACTIONS)] = 100
    days: Annotated[int, Field(ge=1, le=3650)] = 90
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None

    @property
    def accounts(self) -> int:
        return self.customers * self.accounts_per_customer

    @property
    def transactions(self) -> int:
        return self.accounts * self.transactions_per_account

    @model_validator(mode="after")
    def _is_not_too_large(self) -> Self:
        for number, what, most, member in (
            (self.accounts, "accounts", MOST_ACCOUNTS, "accountsPerCustomer"),
            (self.transactions, "transactions", MOST_TRANSACTIONS, "transactionsPerAccount"),
        ):
            if number > most:
                text = f"{number} {what} are too many; at once at most {most} can be generated."
                refuse(Mismatch(text=text, path=(member,)))
        return self


def generate_in_pieces(bank: Bank, plan: DataPlan) -> Generator[int, None, dict[str, Any]]:
    """Generate customers as planned, in pieces of a few changes of the store; yields the number of complete customers.

    Returns `{counts: {customers, accounts, transactions}, customers: [{customerId, customerNumber, customerType,
    customerName, nationalId, accounts: [iban]}]}`; `nationalId` is a person who can act for the customer.

    Between two pieces the bank may be used. After a failure, or an exception thrown into the generator, it deletes what
    it has created, also in pieces, and nothing else; closing the generator leaves the complete customers. CONFLICT if
    the bank is reset meanwhile.
    """
    work = _Generator(bank, plan)
    each = max(plan.customers // 100, 10)
    customers = []
    work.check()
    try:
        for number in range(plan.customers):
            customers.append((yield from work.customer(number)))
            if (number + 1) % each == 0:
                bank.publish(progress_event(bank, "customers", "generating", done=number + 1, of=plan.customers))
            yield number + 1
            work.check()
    except Exception:
        yield from work.delete()
        raise
    counts = {"customers": plan.customers, "accounts": plan.accounts, "transactions": work.created}
    return {"counts": counts, "customers": customers}


class _Generator:
    def __init__(self, bank: Bank, plan: DataPlan) -> None:
        self._bank = bank
        self._documents = bank.documents
        self._plan = plan
        # With a seed in the plan the data is the same in every bank; else the bank's own seed is used, if it has one.
        seeded = plan.seed is not None
        ids = Ids(bank.documents, seed=plan.seed) if seeded else bank.ids
        purpose = "generate" if seeded else f"generate:{bank.documents.count(CUSTOMER)}"
        self._draw = ids.random(purpose)
        self._pools = Pools(self._draw)
        self._period = Period(bank.clock.today(), plan.days)
        self._created = bank.clock.stamp()
        self.created = 0  # transactions
        self._customers: list[tuple[str, str]] = []  # ids of the generated customers and of their persons
        self._content = bank.documents.content()

    def check(self) -> None:
        """Refuse to continue in a bank that was reset or deleted meanwhile."""
        if self._content is None or self._documents.content() is not self._content:
            self._customers.clear()
            text = "The bank was reset or deleted in the meantime, with the customers generated so far."
            raise BankError("CONFLICT", text)

    def delete(self) -> Iterator[int]:
        """Delete the generated customers one by one, in pieces."""
        documents = self._documents
        while self._customers:
            customer_id, person_id = self._customers[-1]
            own = [account["id"] for account in documents.find(ACCOUNT, customerId=customer_id)]
            holders = [(TRANSACTION, account_id) for account_id in own]
            yield from shortening(self._bank, CUSTOMER, customer_id, holders)
            if documents.content() is not self._content:
                return
            self._customers.pop()
            with documents.transaction():
                sandbox_accounts.delete(self._bank, ACCOUNT, own)
                for agreement in documents.find(AGREEMENT, owner=customer_id):
                    documents.delete(AGREEMENT, agreement["id"])
                documents.delete(CUSTOMER, customer_id)
                documents.delete(PERSON, person_id)
            yield len(self._customers)

    def customer(self, number: int) -> Generator[int, None, dict[str, Any]]:
        """Create a complete customer, after `number` others, in pieces; returns its entry of the answer."""
        corporate = number % COMPANIES == COMPANIES - 1
        person: Person = {
            "id": self._new(synthetic_national_number, CUSTOMER, "customerNumber"),
            "name": self._pools.person(self._draw),
        }
        owner_number = person["id"]
        if corporate:
            owner_number = self._new(synthetic_organisation_number, CUSTOMER, "customerNumber")
        customer: Customer = {
            "id": self._id(CUSTOMER, owner_number),
            "customerNumber": owner_number,
            "type": "corporate" if corporate else "private",
            "name": self._pools.company(self._draw) if corporate else person["name"],
            "created": self._created,
        }
        if corporate:
            customer["organisationNumber"] = owner_number
        self._customers.append((customer["id"], person["id"]))
        with self._documents.transaction():
            self._documents.put(PERSON, person)
            self._documents.put(CUSTOMER, customer)
            accounts = [self._account(customer, index) for index in range(self._plan.accounts_per_customer)]
            if corporate:
                self._documents.put(AGREEMENT, self._agreement(customer, person, accounts))
        for _ in self._fill(customer, accounts):
            yield number
            self.check()
        return {
            "customerId": customer["id"],
            "customerNumber": customer["customerNumber"],
            "customerType": customer["type"],
            "customerName": customer["name"],
            "nationalId": person["id"],
            "accounts": [account["iban"] for account in accounts],
        }

    # Numbers that no customer of the bank has or has had, because ids are derived from numbers.

    def _new(self, draw: Callable[[Callable[[int], int]], str], kind: Kind[Any], member: str) -> str:
        documents = self._documents
        for _ in range(MOST_DRAWS):
            number = draw(self._draw.randrange)
            in_use = documents.first(kind, **{member: number}) is not None or documents.exists(PERSON, number)
            if not in_use and not documents.exists(kind, self._id(kind, number)):
                return number
        raise BankError("CONFLICT", "The bank has almost no unused numbers left: reset it, or use another bank.")

    def _id(self, kind: Kind[Any], number: str) -> str:
        return self._bank.ids.fixed(f"{kind.name}:{number}")

    # documents

    def _account(self, customer: Customer, index: int) -> Account:
        private = customer["type"] == "private"
        draw = partial(synthetic_account_number, bank_code="9990" if private else "9991")
        bban = self._new(draw, ACCOUNT, "bban")
        names = ("Brukskonto", "Sparekonto") if private else ("Driftskonto", "Plasseringskonto")
        kind = "CACC" if index == 0 else "SVGS"
        account: Account = {
            "id": self._id(ACCOUNT, bban),
            "customerId": customer["id"],
            "bban": bban,
            "iban": iban_of(bban),
            "currency": "NOK",
            "name": names[index > 0] if index < 2 else f"{names[1]} {index}",
            "product": names[index > 0],
            "cashAccountType": kind,
            "bic": BIC,
            "usage": usage(customer),
            "status": "enabled",
            "creditLine": "0.00",
            "opening": "0.00",
            "booked": "0.00",
            "reserved": "0.00",
            "lastChange": self._created,
            "created": self._created,
        }
        self._documents.put(ACCOUNT, account)
        return account

    def _agreement(self, customer: Customer, person: Person, accounts: list[Account]) -> Agreement:
        identity = fixed_id(f"agreement:{customer['customerNumber']}:generated")
        fixed = self._bank.ids.fixed
        engagements = [
            people.engagement(fixed(f"engagement:{identity}:{account['bban']}"), customer["id"], account)
            for account in accounts
        ]
        return {
            "id": identity,
            "owner": customer["id"],
            "name": f"Nettbank {customer['name']}",
            "organisationNumber": customer["customerNumber"],
            "signatures": 1,
            "persons": [person["id"]],
            "engagements": engagements,
            "accounts": [account["id"] for account in accounts],
            "created": self._created,
        }

    def _fill(self, customer: Customer, accounts: list[Account]) -> Iterator[int]:
        """Create the transactions of a customer's accounts, with the transfers between them on both sides."""
        # Each account has a random stream of its own: who is generated does not depend on the days of the period.
        draws = [Random(self._draw.getrandbits(64)) for _ in accounts]
        first, *others = accounts
        most = self._plan.transactions_per_account
        moves: list[list[Move]] = [[] for _ in others]
        own: list[Move] = []
        for draw, savings, account in zip(draws[1:], moves, others, strict=True):
            for day, amount in saving(draw, self._period):
                if len(savings) < most:
                    own.append(_transfer(customer, account, day, -amount))
                    savings.append(_transfer(customer, first, day, amount))
            savings += islice(interest(draw, self._period), most - len(savings))
        rest = most * len(accounts) - len(own) - sum(map(len, moves))
        pattern = household if customer["type"] == "private" else company
        life = pattern(draws[0], self._pools, self._period, count=rest)
        for draw, account, moved in zip(draws, accounts, (chain(own, life), *moves), strict=True):
            yield from self._book(customer, account, moved, draw)

    def _book(self, customer: Customer, account: Account, moves: Iterable[Move], draw: Random) -> Iterator[int]:
        """Write an account's transactions, oldest first, in pieces; the balance never goes below zero."""
        by_day: defaultdict[date, list[Move]] = defaultdict(list)  # sorting all of them would be a long step
        for number, move in enumerate(moves, 1):
            by_day[move.day].append(move)
            if number % DRAWN == 0:
                yield self.created
        ordered = [move for _, moved in sorted(by_day.items()) for move in moved]
        lowest = min(accumulate((move.amount for move in ordered), initial=0))
        booked = draw.randrange(500_00, 25_000_00) - lowest
        account["opening"] = account["booked"] = _kroner(booked)
        for first in range(0, max(len(ordered), 1), BATCH):
            batch = ordered[first : first + BATCH]
            with self._documents.transaction():
                for transaction in self._transactions(customer, account, batch, first):
                    self._documents.put(TRANSACTION, transaction)
                    account["lastChange"] = transaction["order"][11:]
                booked += sum(move.amount for move in batch)
                account["booked"] = _kroner(booked)
                self._documents.put(ACCOUNT, account)
            self.created += len(batch)
            if self.created % BATCH < len(batch):  # a multiple of it is reached
                yield self.created

    def _transactions(
        self, customer: Customer, account: Account, moves: list[Move], first: int
    ) -> Iterator[Transaction]:
        """The documents of `moves`, after `first` others."""
        fixed, holder = self._bank.ids.fixed, account["id"]
        sides = {out: own_side(account, customer["name"], outgoing=out) for out in (True, False)}
        for number, move in enumerate(moves, first):
            day = move.day.isoformat()
            yield {
                "id": fixed(f"entry:{holder}:{number}"),
                "accountId": holder,
                "currency": account["currency"],
                # Within a day by their numbers.
                **ledger.shelved(account, "booked", day, f"{day}T12:00:00.{number:06}+00:00"),
                "amount": _kroner(move.amount),
                "bookingDate": day,
                "valueDate": day if move.value_day is None else move.value_day.isoformat(),
                **sides[move.amount < 0],
                **move.members,
            }


def _kroner(amount: int) -> str:
    """An amount in øre as documents store it."""
    sign, rest = ("-", -amount) if amount < 0 else ("", amount)
    return f"{sign}{rest // 100}.{rest % 100:02}"


def _transfer(customer: Customer, other: Account, day: date, amount: int) -> Move:
    """One side of a transfer between a customer's own accounts."""
    outgoing = amount < 0
    members: TransactionDetails = {
        **own_side(other, customer["name"], outgoing=not outgoing),
        "remittanceInformationUnstructured": "Sparing",
        "bankTransactionCode": transfer_code(outgoing=outgoing),
        "proprietaryBankTransactionCode": "Overføring",
    }
    return Move(day, amount, members)
