"""Who acts in a story: TPPs with their certificates and sessions, and customers (scenario-language.md#steps).

`as` of a story or a step says who; `Actors` has them act on a bank through one transport.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any

from cryptography.x509 import load_pem_x509_certificate
from pydantic import AfterValidator, ConfigDict, Field

from emulator.bank.clock import oslo_date
from emulator.bank.validation import Adds, Mismatch, Model, Omittable, Text, Text100, filled, one_of, refuse
from emulator.ca import FLAWS, ROLES, TPP_NAME, Credentials
from emulator.client.clients import Tpp
from emulator.client.signing import Identity
from emulator.failure import Failed
from emulator.httpsig.sendable import Prepared
from emulator.scenario.transport import ReceivedAnswer, Transport, TransportFailed
from emulator.scenario.values import Context, either
from emulator.scenario.variables import leaves

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

    @property
    def described(self) -> NewTpp:
        """The TPP as the story has described it, if it has."""
        return self.tpp if isinstance(self.tpp, NewTpp) else NewTpp(name=self.tpp or "demo")

    def over(self, base: As, described: dict[str, NewTpp]) -> As:
        """Who acts by these members, else by those of `base`.

        `described`: the TPPs that the story has described so far; a name alone means the last one of that name.
        """
        changes: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if isinstance(self.tpp, NewTpp):
            described[self.tpp.name] = self.tpp
        elif self.tpp is not None:
            changes["tpp"] = described.get(self.tpp, self.tpp)
        if self.national_id is not None:
            # Another person has another context: that of the story does not apply to it.
            changes = {"context": None, "agreement": None, "accounts": None, **changes}
        return base.model_copy(update=changes)

    def filled(self, fill: Callable[[Any], Any]) -> As:
        """The same with the `${names}` in it replaced by `fill`, as an earlier step may have saved them."""
        texts = {"national_id": self.national_id, "agreement": self.agreement}
        changes: dict[str, Any] = {name: str(fill(text)) for name, text in texts.items() if text is not None}
        if self.accounts is not None:
            changes["accounts"] = [str(fill(name)) for name in self.accounts]
        return self.model_copy(update=changes)


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
        """The answer to a request that no step of the story names; raises TransportFailed, which names it."""
        try:
            return self.transport.ask(method, path, body)
        except Failed as failed:
            raise TransportFailed(f"{method} /_emulator{path} failed: {failed}") from None

    def _identity(self, wanted: NewTpp) -> tuple[Identity, str]:
        """The identity of a TPP of the story, and its tppId; a certificate is issued at the first use."""
        key = wanted.model_dump_json()
        if key not in self._identities:
            described = wanted.model_dump(by_alias=True, exclude_none=True)
            body = {**described, "name": STORED_AS + wanted.name, "subject": wanted.name, "replace": True}
            issued = self._ask("POST", "/tpps", body)
            certificate = load_pem_x509_certificate(issued["certificate"].encode())
            # Identity.from_pem would verify the key, which takes as long as making one did.
            identity = Identity.of(Credentials(wanted.name, certificate, issued["key"].encode()))
            self._identities[key] = (identity, issued["tppId"])
        return self._identities[key]

    def person(self, persona: As, *clues: Any) -> str | None:
        """The customer of a request: that of `persona`, else the owner of an account in `clues`, else the last one."""
        if persona.national_id is not None:
            self._person = persona.national_id
            return self._person
        people = self._ask("GET", "/people?limit=1000000")["people"][::-1]
        named = set(_texts([*clues]))
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

    def actor(self, persona: As, person: str | None) -> Tpp:
        """The TPP with PSU-ID, session and agreement of a person; a session is created at the first use."""
        key = (persona.described.model_dump_json(), person, persona.context, persona.agreement)
        if key not in self._actors:
            tpp = self.without_customer(persona)
            tpp.psu_context = persona.context
            self._actors[key] = tpp
            if persona.session and person is not None:
                self._seed(tpp, persona, person)
        return self._actors[key]

    def without_customer(self, persona: As) -> Tpp:
        """The TPP without a customer, for operations that need none."""
        return Tpp(self.transport.base, self._identity(persona.described)[0])

    def _seed(self, tpp: Tpp, persona: As, person: str) -> None:
        shared = persona.model_dump(by_alias=True, exclude_none=True, include={"context", "agreement", "accounts"})
        body = {"tpp": self._identity(persona.described)[1], "nationalId": person, **shared}
        tpp.use_session(self._ask("POST", "/sessions", body))

    def send(self, prepare: Callable[[], Prepared]) -> ReceivedAnswer:
        """Sign and send a request of a TPP."""
        try:
            prepared = prepare()
        except (ValueError, TypeError) as error:
            raise TransportFailed(f"The request cannot be sent: {error}.") from None
        return self.transport.send(prepared)


def _texts(value: Any) -> Iterator[str]:
    """Every string in a value, and the segments of each string that is a path."""
    for _, text in leaves(value):
        if isinstance(text, str):
            yield from (text, *text.partition("?")[0].split("/"))
