"""Whatever has been done before, who may read what is as consents.md says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from emulator.bank.authentication import authorisations, sca, sca_control
from emulator.bank.customers import access, consents, people
from emulator.bank.customers.access import Caller, Claim
from emulator.bank.errors import BankError, ScaNeeded
from emulator.bank.kinds import ACCOUNT, AGREEMENT, CARD, CUSTOMER
from tests.unit.access.conftest import AGREEMENT_ID, KARI, OLA, TPP, small_bank

OTHER = "8e4c5c7b-9f2d-4bae-8e64-1f4d3c2b1f02"  # a second agreement of Ola's
FOREIGN = "9f5d6d8c-0a3e-4cbf-9f75-2a5e4d3c2a03"
# Person, context and agreement: the accounts and cards that may be read so.
REACHED: dict[tuple[str, str, str | None], tuple[list[str], list[str]]] = {
    (KARI, "PRIVATE", None): (["a-1", "a-2"], ["card-1"]),
    (OLA, "PRIVATE", None): (["o-5"], []),
    (OLA, "CORPORATE", AGREEMENT_ID): (["f-3", "f-4"], []),
    (OLA, "CORPORATE", OTHER): (["f-3"], []),
}
WITHOUT_SCA = ("RESOURCE_UNKNOWN", "HTTP_HEADER_REQUIRED", "ACCESS_EXCEEDED")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SECOND = timedelta(seconds=1)

tpps = st.sampled_from([TPP, TPP, TPP, "ANOTHER-TPP"])
actings = st.sampled_from(sorted(REACHED, key=str))
session_ids = st.sampled_from(["s-1", "s-2", None])
purposes = st.sampled_from(["access", "consent", "user"])
resources = st.sampled_from(["a-1", "a-2", "o-5", "f-3", "f-4", "card-1", "nothing", None])
quotas = st.sampled_from([None, "balances", "transactions", "details"])


@dataclass
class Shared:
    since: datetime
    resources: list[str]
    revoked: bool = False


class AccessAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bank = small_bank()
        put = self.bank.documents.put
        put(CUSTOMER, {"id": "c-ola", "customerNumber": OLA, "type": "private", "name": "Ola Prøve"})
        put(
            ACCOUNT,
            {"id": "o-5", "customerId": "c-ola", "bban": "5", "iban": "NO5", "currency": "NOK", "status": "enabled"},
        )
        agreement = self.bank.documents.get(AGREEMENT, AGREEMENT_ID) or {}
        put(AGREEMENT, {**agreement, "id": OTHER, "engagements": agreement["engagements"][:1]})
        put(AGREEMENT, {**agreement, "id": FOREIGN, "persons": ["12345678"]})
        self.now = self.bank.clock.now()
        self.known: dict[tuple[str, str], str] = {}
        # when each began and is over: after an hour, or when another took its place
        self.sessions: dict[tuple[str, str, str, str, str | None], tuple[datetime, datetime]] = {}
        self.consents: dict[tuple[str, str, str, str | None], Shared] = {}
        self.calls: dict[tuple[str, str, str], list[datetime]] = {}

    # what happens

    @initialize()
    def the_tpps_know_their_customers(self) -> None:
        for acting in REACHED:
            self.a_customer_approves(TPP, acting, "s-2" if OTHER in acting else "s-1", "access", whole=True)
        self.a_customer_approves("ANOTHER-TPP", (KARI, "PRIVATE", None), "s-1", "access", whole=True)

    @rule(by=st.sampled_from([SECOND, HOUR - SECOND, HOUR, 6 * HOUR, DAY - HOUR, 80 * DAY, 90 * DAY, 100 * DAY]))
    def time_passes(self, by: timedelta) -> None:
        self.now += by
        self.bank.clock.advance(by)

    @rule(tpp=tpps, acting=actings, session_id=session_ids, purpose=purposes, whole=st.booleans())
    def a_customer_approves(
        self, tpp: str, acting: tuple[str, str, str | None], session_id: str | None, purpose: str, whole: bool
    ) -> None:
        person, context, agreement = acting
        accounts, cards = REACHED[acting]
        redirect = sca_control.approve(
            self.bank,
            self._opened(tpp, session_id, purpose),
            national_id=person,
            context=context,
            agreement=agreement,
            accounts=None if whole or purpose == "user" else accounts[:1],
        )
        query = {name: values[0] for name, values in parse_qs(urlsplit(redirect or "").query).items()}
        assert self.known.setdefault((tpp, person), query["psu-id"]) == query["psu-id"]
        owner = (tpp, person, context)
        for other in self.sessions:
            if (*other[:2], other[3]) == owner and other[2] != query["tpp-session-id"] and self._lives(other):
                self.sessions[other] = (self.sessions[other][0], self.now)
        self.sessions[tpp, person, query["tpp-session-id"], context, agreement] = (self.now, self.now + HOUR)
        if purpose != "user":
            self.consents[tpp, *acting] = Shared(self.now, [*accounts, *cards] if whole else accounts[:1])

    @rule(tpp=tpps, session_id=session_ids)
    def a_customer_declines(self, tpp: str, session_id: str | None) -> None:
        sca_control.reject(self.bank, self._opened(tpp, session_id))

    @rule(tpp=tpps, acting=actings)
    def a_customer_revokes(self, tpp: str, acting: tuple[str, str, str | None]) -> None:
        person, context, agreement = acting
        consent = consents.current(self.bank, people.Owner(tpp, person, context, agreement))
        if consent is not None:
            consents.revoke(self.bank, consent["id"])
            given = self.consents[tpp, *acting]
            given.revoked = given.revoked or self.now < given.since + 180 * DAY  # an expired one stays expired

    def _opened(self, tpp: str, session_id: str | None, purpose: str = "access") -> dict[str, object]:
        known = {"redirectUri": "https://tpp.example/back", **({"sessionId": session_id} if session_id else {})}
        return sca.get(self.bank, authorisations.open_sca(self.bank, tpp, purpose, known)) or {}

    # what a TPP is answered

    @rule(
        acting=actings,
        session_id=st.sampled_from(["s-1", "s-1", "s-2", None]),
        attended=st.booleans(),
        number=st.integers(0, 2),
        quota=quotas,
        times=st.sampled_from([1, 1, 5]),
    )
    def a_tpp_reads_what_its_customer_has(
        self,
        acting: tuple[str, str, str | None],
        session_id: str | None,
        attended: bool,
        number: int,
        quota: str | None,
        times: int,
    ) -> None:
        person, _, agreement = acting
        accounts, cards = REACHED[acting]
        has = [*accounts, *cards, None]
        claim = Claim(TPP, self.known[TPP, person], None, session_id, None, agreement, attended)
        for _ in range(times):
            self._read(claim, has[number % len(has)], quota)

    @rule(
        tpp=tpps,
        psu=st.sampled_from([(TPP, KARI), (TPP, OLA), (TPP, OLA), ("ANOTHER-TPP", KARI), (TPP, "nobody")]),
        session_id=session_ids,
        context=st.sampled_from([None, "PRIVATE", "CORPORATE"]),
        agreement=st.sampled_from([None, AGREEMENT_ID, OTHER, FOREIGN]),
        attended=st.booleans(),
        resource=resources,
        quota=quotas,
    )
    def a_tpp_reads(
        self,
        tpp: str,
        psu: tuple[str, str],
        session_id: str | None,
        context: str | None,
        agreement: str | None,
        attended: bool,
        resource: str | None,
        quota: str | None,
    ) -> None:
        self._read(Claim(tpp, self.known.get(psu), None, session_id, context, agreement, attended), resource, quota)

    def _read(self, claim: Claim, resource: str | None, quota: str | None) -> None:
        expected = self._refusal(claim, resource, quota)
        caller = self._let_in(claim, resource, quota)
        if isinstance(caller, BankError):
            assert (caller.code, isinstance(caller, ScaNeeded)) == (expected, expected not in WITHOUT_SCA)
            return
        assert expected is None
        if resource is None:
            shared = self.consents[claim.tpp_id, caller.national_id, caller.context, caller.agreement].resources
            given = caller.consent
            listed = [*access.shared_accounts(self.bank, given), *access.shared_cards(self.bank, given)]
            assert [one["id"] for one in listed] == shared

    def _let_in(self, claim: Claim, resource: str | None, quota: str | None) -> Caller | BankError:
        kind = CARD if resource == "card-1" else ACCOUNT
        try:
            caller = access.account_reader(self.bank, claim, resource=resource, kind=kind, quota=quota)
            if quota and resource and not claim.attended:
                access.count_unattended(self.bank, claim, resource, quota)
        except BankError as refused:
            return refused
        return caller

    # what consents.md says

    def _refusal(self, claim: Claim, resource: str | None, quota: str | None) -> str | None:
        tpp, session_id, agreement = claim.tpp_id, claim.session_id, claim.agreement
        if claim.psu_id is None:
            return "SCA_NOT_FOUND"
        person = next((person for (t, person), psu in self.known.items() if (t, psu) == (tpp, claim.psu_id)), None)
        if person is None:
            return "PSU_CREDENTIALS_INVALID"
        own = {acting: both for acting, both in REACHED.items() if acting[0] == person}
        if resource is not None and not any(resource in [*a, *c] for a, c in own.values()):
            return "RESOURCE_UNKNOWN"
        sessions = [one for one in self.sessions if one[:3] == (tpp, person, session_id)]
        latest = max((self.sessions[one][0] for one in sessions), default=self.now)
        telling = {one[3] for one in sessions if self.sessions[one][0] == latest or self.sessions[one][1] > latest}
        context = claim.context or ("CORPORATE" if telling == {"CORPORATE"} else "PRIVATE")
        if agreement is not None:
            context = "CORPORATE"
            if (person, context, agreement) not in own:
                return "PSU_CREDENTIALS_INVALID"
        elif context == "CORPORATE":
            return "HTTP_HEADER_REQUIRED"
        if claim.attended or resource is None:
            wanted = [one for one in sessions if one[3:] == (context, agreement)]
            if not any(map(self._lives, wanted)):
                strangers = any((one[0], one[2]) == (tpp, session_id) for one in self.sessions)
                another = any(map(self._lives, sessions)) and not wanted
                if another or (strangers and not sessions):
                    return "PSU_CREDENTIALS_INVALID"
                return "SCA_EXPIRED" if sessions else "SCA_NOT_FOUND"
        return self._without_consent((tpp, person, context, agreement), resource) or self._too_much(
            claim, self.consents[tpp, person, context, agreement], resource, quota
        )

    def _lives(self, session: tuple[str, str, str, str, str | None]) -> bool:
        return self.now < self.sessions[session][1]

    def _without_consent(self, owner: tuple[str, str, str, str | None], resource: str | None) -> str | None:
        shared = self.consents.get(owner)
        if shared is None or shared.revoked:
            return "CONSENT_UNKNOWN"
        if self.now >= shared.since + 180 * DAY:
            return "CONSENT_EXPIRED"
        return "CONSENT_INVALID" if resource is not None and resource not in shared.resources else None

    def _too_much(self, claim: Claim, shared: Shared, resource: str | None, quota: str | None) -> str | None:
        if claim.attended or quota is None or resource is None:
            return None
        if quota == "details" and self.now > shared.since + 90 * DAY:
            return "CONSENT_EXPIRED"
        calls = self.calls.setdefault((claim.tpp_id, resource, quota), [])
        if sum(self.now < call + DAY for call in calls) >= 4:
            return "ACCESS_EXCEEDED"
        calls.append(self.now)
        return None


TestAccessAgainstModel = AccessAgainstModel.TestCase
TestAccessAgainstModel.settings = settings(stateful_step_count=50)
