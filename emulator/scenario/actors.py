"""The actors of a story: TPPs with their certificates and sessions, and customers, reached through one transport."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from cryptography.x509 import load_pem_x509_certificate

from emulator.bank.clock import oslo_date
from emulator.ca import Credentials
from emulator.client.signing import Identity
from emulator.client.tpp import Prepared, Tpp
from emulator.httpsig.sendable import check_sendable
from emulator.scenario.persona import STORED_AS, Persona, TppWish
from emulator.scenario.transport import ReceivedAnswer, Transport

IDENTIFIER = "PSDNO-SBX-"


class ActorFailed(Exception):
    """An actor of the story cannot act; the argument is a sentence."""


class Actors:
    """The TPPs and customers of one story."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._identities: dict[TppWish, tuple[Identity, str]] = {}
        self._actors: dict[tuple[Any, ...], Tpp] = {}
        self._person: str | None = None

    def today(self) -> date:
        """The Oslo date of bank time."""
        return oslo_date(datetime.fromisoformat(self._ask("GET", "/clock")["now"]))

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.transport.control(method, path, body)
        if answer.lost or answer.status >= 400:
            messages = (answer.json() or {}).get("tppMessages") or [{}]
            raise ActorFailed(f"{method} /_emulator{path} answered {answer.status}: {messages[0].get('text', '')}")
        return answer.json()

    def tpp_id(self, wish: TppWish) -> str:
        """The tppId of a TPP of the story."""
        return self._identity(wish)[1]

    def _identity(self, wish: TppWish) -> tuple[Identity, str]:
        if wish not in self._identities:
            body = {
                "name": STORED_AS + wish.name,
                "subject": wish.name,
                "roles": list(wish.roles),
                "organizationIdentifier": wish.organization_identifier or IDENTIFIER + wish.name,
                "replace": True,
            }
            if wish.flaw is not None:
                body["flaw"] = wish.flaw
            issued = self._ask("POST", "/tpps", body)
            certificate = load_pem_x509_certificate(issued["certificate"].encode())
            # Identity.from_pem would verify the key, which takes as long as making one did.
            identity = Identity.of(Credentials(wish.name, certificate, issued["key"].encode()))
            self._identities[wish] = (identity, issued["tppId"])
        return self._identities[wish]

    def person(self, persona: Persona, *clues: Any) -> str | None:
        """The customer of a request: that of `persona`, else the owner of an account in `clues`, else the last one."""
        if persona.national_id is not None:
            self._person = persona.national_id
            return self._person
        people = self._ask("GET", "/people?limit=1000000")["people"][::-1]
        named = set(_texts(clues))
        for person in people:
            if any(named & {account["id"], account["iban"], account["bban"]} for account in person["accounts"]):
                self._person = person["nationalId"]
                return self._person
        if self._person is None:
            holders = [person for person in people if person["accounts"]]
            # Private customers first: they need no agreement.
            holders.sort(key=lambda person: bool(person["agreements"]))
            self._person = holders[0]["nationalId"] if holders else None
        return self._person

    def actor(self, persona: Persona, person: str | None) -> Tpp:
        """The TPP with PSU-ID, session and agreement of a person; a session is created at the first use."""
        key = (persona.tpp, person, persona.context, persona.agreement)
        if key not in self._actors:
            tpp = self.without_customer(persona)
            tpp.psu_context = persona.context
            self._actors[key] = tpp
            if persona.session and person is not None:
                self._seed(tpp, persona, person)
        return self._actors[key]

    def without_customer(self, persona: Persona) -> Tpp:
        """The TPP without a customer, for operations that need none."""
        return Tpp(self.transport.base, self._identity(persona.tpp)[0])

    def _seed(self, tpp: Tpp, persona: Persona, person: str) -> None:
        wished = {
            "tpp": self.tpp_id(persona.tpp),
            "nationalId": person,
            "context": persona.context,
            "agreement": persona.agreement,
            "accounts": None if persona.accounts is None else list(persona.accounts),
        }
        seeded = self._ask("POST", "/sessions", {name: value for name, value in wished.items() if value is not None})
        tpp.psu_id = seeded["psuId"]
        tpp.session_id = seeded["tppSessionId"]
        tpp.psu_corporate_id = seeded.get("psuCorporateId")
        tpp.psu_context = seeded.get("context")

    def send(self, prepare: Callable[[], Prepared]) -> ReceivedAnswer:
        """Sign and send a request of a TPP."""
        try:
            prepared = prepare()
            check_sendable(prepared.method, prepared.target, prepared.headers)
        except (ValueError, TypeError) as error:
            raise ActorFailed(f"The request cannot be sent: {error}.") from None
        return self.transport.send(prepared)


def _texts(value: Any) -> list[str]:
    """Every string in a value, and the segments of each string that is a path."""
    if isinstance(value, str):
        return [value, *value.partition("?")[0].split("/")]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for entry in inner for text in _texts(entry)]
