"""Who acts in a story: TPPs with their certificates and sessions, and customers (scenario-language.md#steps).

`as` of a story or a step says who; `Actors` has them act on a bank through one transport.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

from cryptography.x509 import load_pem_x509_certificate
from pydantic import AfterValidator, ConfigDict, Field

from emulator.bank.clock import oslo_date
from emulator.bank.validation import Adds, Mismatch, Model, Omittable, Text, Text100, filled, one_of, refuse
from emulator.ca import FLAWS, ROLES, TPP_NAME, Credentials
from emulator.client.signing import Identity
from emulator.client.tpp import Prepared, Tpp
from emulator.httpsig.sendable import check_sendable
from emulator.scenario.transport import ReceivedAnswer, Transport
from emulator.scenario.values import Context, either

# The prefix keeps the certificates of stories apart from those of the user.
STORED_AS = "story-"
LONGEST_NAME = 63 - len(STORED_AS)


def _name(value: str) -> str:
    if not TPP_NAME.fullmatch(value):
        wanted = "the name of a TPP, of letters, digits, blanks, dots, dashes and underscores"
        refuse(Mismatch(wanted, value=value))
    return value


TppName = Annotated[str, filled(LONGEST_NAME), AfterValidator(_name), Adds({"pattern": f"^{TPP_NAME.pattern}$"})]


class NewTpp(Model):
    """A TPP that the story describes."""

    name: TppName
    roles: Annotated[list[Annotated[str, one_of("role", ROLES)]], Field(min_length=1)] = Field(
        default_factory=lambda: [*ROLES]
    )
    organization_identifier: Omittable[Annotated[str, filled(256)]] = None
    flaw: Omittable[Annotated[str, one_of("flaw", FLAWS)]] = None


DEFAULT_TPP = NewTpp(name="demo")
if TYPE_CHECKING:
    NamedTpp = str | NewTpp
else:
    NamedTpp = either(TppName, NewTpp)


class As(Model):
    """Who acts; omitted members are those of the story, or defaults of the bank."""

    model_config = ConfigDict(title="as")

    tpp: Omittable[NamedTpp] = Field(None, description="The TPP that signs; a name alone: as it was described last.")
    national_id: Omittable[Text100] = Field(
        None, description="The customer; omitted: the owner of the account that pays."
    )
    context: Omittable[Context] = None
    agreement: Omittable[Text100] = Field(None, description="psuCorporateId of the agreement.")
    accounts: Omittable[list[Text]] = Field(None, description="The accounts to share: iban, bban or resourceId.")
    session: bool = Field(True, description="false: the TPP does not know the customer yet.")


@dataclass(frozen=True, slots=True)
class Persona:
    """Who acts. Without `national_id` it is the owner of the account in the request.

    `session` False: the TPP does not know the customer yet.
    """

    tpp: NewTpp = DEFAULT_TPP
    national_id: str | None = None
    context: str | None = None
    agreement: str | None = None
    accounts: tuple[str, ...] | None = None
    session: bool = True

    def filled(self, fill: Callable[[Any], Any]) -> Persona:
        """The persona with the `${names}` in it replaced by `fill`, as an earlier step may have saved them."""
        texts = {"national_id": self.national_id, "agreement": self.agreement}
        changes: dict[str, Any] = {name: str(fill(text)) for name, text in texts.items() if text is not None}
        if self.accounts is not None:
            changes["accounts"] = tuple(str(fill(name)) for name in self.accounts)
        return replace(self, **changes)


def acting(form: As, base: Persona, described: dict[str, NewTpp]) -> Persona:
    """The persona of `as`, over that of the story.

    `described`: the TPPs that the story has described so far; a name alone means the last one of that name.
    """
    changes: dict[str, Any] = {name: getattr(form, name) for name in form.model_fields_set}
    if form.accounts is not None:
        changes["accounts"] = tuple(form.accounts)
    if isinstance(form.tpp, NewTpp):
        described[form.tpp.name] = form.tpp
    elif form.tpp is not None:
        changes["tpp"] = described.get(form.tpp) or NewTpp(name=form.tpp)
    if form.national_id is not None:
        # Another person has another context: that of the story does not apply to it.
        changes = {"context": None, "agreement": None, "accounts": None, **changes}
    return replace(base, **changes)


IDENTIFIER = "PSDNO-SBX-"


class ActorFailed(Exception):
    """An actor of the story cannot act; the argument is a sentence."""


class Actors:
    """The TPPs and customers of one story."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._identities: dict[str, tuple[Identity, str]] = {}
        self._actors: dict[tuple[Any, ...], Tpp] = {}
        self._person: str | None = None

    def today(self) -> date:
        """The Oslo date of bank time."""
        return oslo_date(datetime.fromisoformat(self._ask("GET", "/clock")["now"]))

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.transport.control(method, path, body)
        if answer.lost or answer.status >= 400:
            raise ActorFailed(f"{method} /_emulator{path} answered {answer.status}: {answer.refusal()}")
        return answer.json()

    def _identity(self, wanted: NewTpp) -> tuple[Identity, str]:
        """The identity of a TPP of the story, and its tppId; a certificate is issued at the first use."""
        key = wanted.model_dump_json()
        if key not in self._identities:
            body = {
                "name": STORED_AS + wanted.name,
                "subject": wanted.name,
                "roles": wanted.roles,
                "organizationIdentifier": wanted.organization_identifier or IDENTIFIER + wanted.name,
                "replace": True,
            }
            if wanted.flaw is not None:
                body["flaw"] = wanted.flaw
            issued = self._ask("POST", "/tpps", body)
            certificate = load_pem_x509_certificate(issued["certificate"].encode())
            # Identity.from_pem would verify the key, which takes as long as making one did.
            identity = Identity.of(Credentials(wanted.name, certificate, issued["key"].encode()))
            self._identities[key] = (identity, issued["tppId"])
        return self._identities[key]

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
        key = (persona.tpp.model_dump_json(), person, persona.context, persona.agreement)
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
            "tpp": self._identity(persona.tpp)[1],
            "nationalId": person,
            "context": persona.context,
            "agreement": persona.agreement,
            "accounts": None if persona.accounts is None else list(persona.accounts),
        }
        body = {name: value for name, value in wished.items() if value is not None}
        tpp.use_session(self._ask("POST", "/sessions", body))

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
