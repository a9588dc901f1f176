"""The tools, one method and one row of `TABLE` each: its docstring tells an agent when to use it, its answer is a short
text. What the bank knows a tool asks the control interface for (`desk.ask`).

An answer ends with the address where more stands. What loses data says so and asks for `confirm`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

import yaml
from anyio import from_thread
from mcp.server.mcpserver import Context
from pydantic import Field

from emulator import manual
from emulator.agents.desk import AGENT, Desk
from emulator.bank.errors import STATUS
from emulator.cli.bank import logged
from emulator.cli.conformance import chosen
from emulator.cli.options import runnable
from emulator.cli.sca import sca_place
from emulator.cli.scenario import applied
from emulator.failure import Failed, Refused
from emulator.terminal import message_lines, one_line, request_line

LONGEST = 1500  # characters of a body in an answer
LONGEST_PAGE = 8000  # characters of a page of the manual
MOST_HITS = 8
MOST_ROWS = 50
CHECK_TIMEOUT = 30.0  # seconds for one check of the plan

Tool = Callable[..., str]


def doc(text: str) -> Any:
    """What an agent reads about an argument."""
    return Field(description=text)


Name = Annotated[str, Field(min_length=1)]  # with an empty one the address would be that of the whole list
Customer = Annotated[
    Name | None,
    Field(description="National identity number of the customer for whom the request is sent (see people)."),
]
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS, description="At most that many lines.")]
Confirm = Annotated[bool, Field(description="Do it although it deletes what the answer has named.")]


class Tools:
    """The tools of one server. `TABLE` lists them, with what each may do to the bank."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # The bank and its people

    def open_bank(
        self,
        url: Annotated[
            str | None, doc("A running bank, such as http://127.0.0.1:8080/banks/a; default: --url.")
        ] = None,
        start: Annotated[bool, doc("Start a new bank in memory, which ends with this server, instead.")] = False,
        fixtures: Annotated[
            str | None, doc("With start: the data that it begins with, such as known-state or empty.")
        ] = None,
        seed: Annotated[int | None, doc("With start: makes its ids repeat from run to run.")] = None,
        now: Annotated[
            str | None,
            doc("With start: bank time, such as 2026-03-02T09:00:00+01:00, which then stands still."),
        ] = None,
        settings: Annotated[
            dict[str, Any] | None, doc("With start: settings, such as {'progression': 'immediate'}.")
        ] = None,
        tpp: Annotated[Name, doc("The TPP whose certificate your client uses; created if new.")] = AGENT,
    ) -> str:
        """Find a running bank or start one; use this first. Answers its address, and the certificate for your client.

        The other tools act on the bank that was opened last.
        """
        given = {"fixtures": fixtures, "seed": seed, "now": now, "settings": settings}
        options: Any = {name: value for name, value in given.items() if value is not None}
        if options and not start:
            raise Failed(f"{next(iter(options))} goes with start: true; a running bank has its own")
        if url is not None and start:
            raise Failed("name the url of a running bank, or start: true, not both")
        if start:
            self._desk.start(options)
        else:
            try:
                self._desk.use(url or self._desk.url)
            except Failed as failed:
                why = str(failed).removesuffix(" Is `bank-emulator serve` running?")
                raise Failed(f"{why} open_bank with start: true starts a bank.") from failed
        clock = self._desk.ask("GET", "clock")
        signer = self._desk.signer(tpp)
        return _lines(
            f"{self._desk.url}: bank time {clock['now']}, {clock['mode']}",
            f"TPP {tpp}, tppId {signer.tpp_id}; sign with {signer.folder}/certificate.pem and key.pem",
            f"console {self._desk.url}/console, manual {self._desk.url}/docs/llms.txt",
            "next: people, send_request",
        )

    def people(self, limit: Limit = 20) -> str:
        """List the bank's people, with national identity number, accounts (IBAN, currency) and agreements of firms.

        Use it for the customer and the accounts of a request.
        """
        lines = []
        for person in self._desk.ask("GET", f"people?limit={limit}")["people"]:
            accounts = ", ".join(f"{one['iban']} {one['currency']} ({one['name']})" for one in person["accounts"])
            firms = "".join(f"; acts for {one['name']}" for one in person["agreements"])
            lines.append(f"{person['nationalId']} {person['name']}: {accounts or 'no account of its own'}{firms}")
        return _lines(*lines or ["The bank has nobody."], self._more("customers"))

    # Requests

    def send_request(
        self,
        method: Literal["GET", "POST", "PUT", "DELETE"],
        path: Annotated[str, doc("Path and query, such as /v1/accounts?withBalance=true.")],
        body: Annotated[dict[str, Any] | list[Any] | str | None, doc("JSON, or text that is sent as it is.")] = None,
        customer: Customer = None,
        context: Annotated[
            Literal["PRIVATE", "CORPORATE"] | None, doc("With customer: for itself, or for its firm.")
        ] = None,
        request_id: Annotated[
            str | None, doc("X-Request-ID; default: a new one. The same one repeats a request.")
        ] = None,
        headers: Annotated[dict[str, str | None] | None, doc("Headers to set, or to leave out by null.")] = None,
        tpp: Annotated[Name, doc("The TPP that signs; created if new.")] = AGENT,
    ) -> str:
        """Send one signed request of a TPP to the bank, to see what it answers or to play a client step by step.

        Every needed header is added. With `customer` the TPP has a session and a consent of that person, without an
        SCA; without it the bank answers 401 and a scaRedirect, until the tool customer has approved. A payment needs an
        approval of its own. Addresses and bodies: the manual, page operations.
        """
        signer = self._desk.signer(tpp)
        if customer is not None:
            self._desk.log_in(signer, customer, context)
        elif context is not None:
            raise Failed("context goes with customer")
        changes = {**(headers or {}), **({} if request_id is None else {"X-Request-ID": request_id})}
        content: dict[str, Any] = {"body": body} if isinstance(body, str) else {"json": body}
        try:
            prepared = signer.tpp.prepare(method, path, headers=changes, **content)
            prepared.check()
        except ValueError as error:
            raise Failed(f"the request cannot be sent: {error}") from error
        answer, number = self._desk.send(prepared)
        sent = f"request {number or 'not in the log'}, X-Request-ID {prepared.headers.get('X-Request-ID', 'none')}"
        more = self._more("requests", number) if number else None
        if answer.lost:
            return _lines(f"No answer, the connection was closed; {sent}", more)
        next_step = None
        if answer.status >= 400:
            next_step = "next: explain"
        elif b'"scaRedirect"' in answer.body:
            next_step = "next: customer, as this needs an approval"
        return _lines(f"HTTP {answer.status}; {sent}", _cut(answer.body.decode("utf-8", "replace")), next_step, more)

    def requests(
        self,
        operation: Annotated[str | None, doc("An operationId only, such as createPayment.")] = None,
        status: Annotated[int | None, doc("A status only; 0: no answer was sent.")] = None,
        tpp: Annotated[str | None, doc("A TPP only: name or tppId.")] = None,
        payment: Annotated[str | None, doc("Only those about the payment with this id.")] = None,
        limit: Limit = 20,
    ) -> str:
        """List what TPPs have sent, newest first: number, time, status, request, error, rules of scenarios that acted.

        Use it to see what your client does. `explain` shows one of them.
        """
        asked = {"operation": operation, "status": status, "tpp": tpp, "paymentId": payment, "limit": limit}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        rows = self._desk.ask("GET", f"requests?{query}")["requests"]
        return _lines(*map(request_line, rows) if rows else ["There are none."], self._more("requests"))

    def explain(
        self,
        request: Annotated[
            Name | None, doc("Its number in the log, or latest; default: the newest that was refused.")
        ] = None,
    ) -> str:
        """Explain why a request failed: the difference between the signing strings, or the rule that it breaks.

        Use it for a status of 400 and above, or for a lost answer, of your client or of send_request.
        """
        if request is None:
            rows = self._desk.ask("GET", "requests?limit=1000")["requests"]
            request = next((row["id"] for row in rows if row["status"] >= 400 or not row["status"]), None)
            if request is None:
                return _lines("No request was refused.", self._more("requests"))
        entry = logged(self._desk.connect(self._desk.url), request)
        signature = entry.get("signature")
        codes = [one["code"] for one in entry.get("messages", ()) if one["code"] in STATUS]
        lines = [request_line(entry), *message_lines(entry)]
        lines += [
            f"  {name}: {value}" for name, value in entry["request"]["headers"] if name.lower() in _DISTINGUISHING
        ]
        if entry["request"]["body"]:
            lines.append(f"  body: {_cut(one_line(entry['request']['body']), 500)}")
        if signature is not None and not signature.get("valid"):
            from emulator.api.signature.explain import as_text

            lines.append(as_text(signature).strip())
        elif codes:
            [section] = [one for one in manual.pages()["reference/errors"].sections if one.title == codes[0]]
            lines.append(_cut(section.text.strip()))
        return _lines(*lines, self._more("requests", entry["id"]))

    # The customer and time

    def customer(
        self,
        action: Literal["list", "approve", "decline", "expire", "fail"],
        target: Annotated[Name, doc("A scaRedirect, the id of a payment, basket or consent, or latest.")] = "latest",
        national_id: Annotated[
            str | None, doc("With approve: who approves, if the request did not name the customer.")
        ] = None,
        accounts: Annotated[list[str] | None, doc("With approve: the IBANs to share; default: all.")] = None,
    ) -> str:
        """Play the customer at the bank's pages: list what waits, approve, decline, let its time run out, let it fail.

        Answers where the browser goes; send_request then acts for that customer, as a TPP does after the return.
        """
        if action == "list":
            rows = [row for row in self._desk.ask("GET", "sca?limit=1000")["sca"] if "ended" not in row]
            lines = [
                f"{row['purpose']} {row.get('target', '')} of {row['tpp']}, since {row['created']}, id {row['id']}"
                for row in rows[:MOST_ROWS]
            ]
            return _lines(*lines or ["Nothing waits for a customer."], self._more("sca"))
        address, name = sca_place(target, self._desk.url)
        if address != self._desk.url:
            raise Failed(f"{target} is of another bank than {self._desk.url}: open_bank turns to it")
        body = {"nationalId": national_id, "accounts": accounts} if action == "approve" else {}
        verb = "reject" if action == "decline" else action
        given = {member: value for member, value in body.items() if value is not None}
        redirect = self._desk.ask("POST", f"sca/{quote(name, safe='!=')}/{verb}", given)["redirect"]
        self._desk.returned(redirect or "")
        return _lines(f"The browser goes to {redirect}" if redirect else "The customer left.", self._more("sca"))

    def clock(
        self,
        advance: Annotated[str | None, doc("How far, such as 10s, 1h30m, 90d or P1M.")] = None,
        mode: Annotated[Literal["live", "frozen"] | None, doc("Let bank time run, or make it stand still.")] = None,
    ) -> str:
        """Tell bank time, or advance it: statuses, sessions, consents and quotas follow it. It never goes back.

        A straks payment is paid 3 s after its approval; advance instead of waiting.
        """
        if mode is not None:
            self._desk.ask("PUT", "clock", {"mode": mode})
        if advance is not None:
            self._desk.ask("POST", "clock/advance", {"by": advance})
        clock = self._desk.ask("GET", "clock")
        return _lines(f"Bank time is {clock['now']}, {clock['mode']}.", self._more())

    def ledger(
        self,
        payment: Annotated[Name | None, doc("This payment only, with its history.")] = None,
        limit: Limit = 10,
    ) -> str:
        """Read what the bank has booked: payments with status, newest first, and balances of accounts.

        Use it to hold what your client believes against what is true.
        """
        rows = self._desk.ask("GET", "payments?limit=1000")["payments"]
        if payment is not None:
            rows = [row for row in rows if row["paymentId"] == payment]
            if not rows:
                raise Failed(f"there is no payment {payment}; ledger without it lists them")
        lines = []
        for row in rows[:limit]:
            amount = row["instructedAmount"]
            lines.append(
                f"{row['transactionStatus']} {amount['amount']} {amount['currency']} to "
                f"{row.get('creditorName', '-')}, {row['product']}, created {row['created']}, "
                f"paymentId {row['paymentId']}"
            )
        if payment is not None:
            lines += [f"  {change['at']} {change['status']}" for change in rows[0]["history"]]
            return _lines(*lines, self._more("payments", payment))
        books = self._desk.ask("GET", "ledger")
        lines += [
            f"{one['iban']} {one['balance']} {one['currency']}"
            + (f", {one['reserved']} reserved" if float(one["reserved"]) else "")
            for one in books["accounts"][:MOST_ROWS]
        ]
        balanced = "The ledger is balanced." if books["balanced"] else "The ledger is not balanced."
        return _lines(*lines, balanced, self._more("payments"))

    # Scenarios

    def scenarios(
        self,
        name: Annotated[Name | None, doc("Show this one, as YAML that apply_scenario takes.")] = None,
        about: Annotated[str | None, doc("Only those with this word in name or summary.")] = None,
    ) -> str:
        """List the ready scenarios, which make the bank fail in one way each, or show one to write your own from it.

        The language of scenarios: the manual, page scenario-language.
        """
        if name is not None:
            shown = self._desk.ask("GET", f"scenarios/{quote(name, safe='')}")
            text = yaml.safe_dump(dict(shown), sort_keys=False, allow_unicode=True, width=120)
            return _lines(text.rstrip(), self._more("scenarios", name))
        rows = self._desk.ask("GET", "scenarios?limit=1000")["scenarios"]
        if about is not None:
            rows = [row for row in rows if about.casefold() in f"{row['name']} {row['summary']}".casefold()]
        lines = [f"{row['name']}{' (play only)' if row['play'] else ''}: {row['summary']}" for row in rows]
        return _lines(*lines or ["There is none."], self._more("scenarios"))

    def apply_scenario(
        self,
        scenario: Annotated[str | dict[str, Any], doc("The name of a ready one, or your own: YAML text or JSON.")],
        parameters: Annotated[dict[str, Any] | None, doc("Values for the parameters of a ready one.")] = None,
        check_only: Annotated[bool, doc("Check it and tell what it would change; apply nothing.")] = False,
        confirm: Confirm = False,
    ) -> str:
        """Make the bank behave as a scenario says: lost answers, refusals, empty accounts, late statuses.

        One with problems changes nothing, and the answer lists them all with their lines. One that replaces data of the
        bank (documents, clock, rules) is applied with confirm: true only, else the answer says what would be lost.
        """
        body = _scenario_body(scenario, parameters)
        try:
            preview = self._desk.ask("POST", "scenario/preview", body)
            lost = ", ".join(preview["lost"])
            if check_only:
                return _lines("It has no problems.", applied(preview), f"It would replace {lost}." if lost else None)
            if lost and not confirm:
                raise Failed(f"nothing was changed: {preview['scenario']} replaces {lost}; confirm: true applies it")
            done = self._desk.ask("POST", "scenario", body)
        except Refused as refused:
            raise Failed(f"nothing was changed: {refused}") from refused
        if done["reset"]:
            self._desk.forget_customers()
        return _lines(
            f"{done['scenario']} is applied: {applied(done)}", *done.get("notes", ()), self._more("scenarios")
        )

    def clear(
        self,
        what: Annotated[
            Literal["rules", "requests", "report", "bank"],
            Field(
                description="rules: of all scenarios. requests: the log. report: what audit has seen. bank: all of it, "
                "back to what it was made with (customers, payments, consents, clock, rules, log)."
            ),
        ],
        confirm: Confirm = False,
    ) -> str:
        """Delete something, to start again: the rules of scenarios, the request log, the report, or all the bank has.

        What is deleted is lost; without confirm: true nothing happens.
        """
        method, path, about = _CLEARED[what]
        if not confirm:
            raise Failed(f"nothing was deleted: this deletes {about} at {self._desk.url}; confirm: true does it")
        self._desk.ask(method, path)
        if what == "bank":
            self._desk.forget_customers()
        return _lines(f"Deleted: {about}.", self._more())

    # Judging the client

    def audit(
        self,
        check: Annotated[Name | None, doc("This check only; default: those that fail or warn.")] = None,
    ) -> str:
        """Judge your client by all that the bank has seen of it: what it did wrong, the request, and what is right.

        Use it after your client has run. `run_checks` arranges the occasions that it has not met.
        """
        report = self._desk.ask("GET", "conformance")
        rows = report["checks"]
        if check is not None:
            rows = [row for row in rows if row["check"] == check]
            if not rows:
                raise Failed(f"there is no check {check}; the manual, page checks, lists them")
        wrong = rows if check is not None else [row for row in rows if row["verdict"] in ("fail", "warn")]
        lines = [line for row in wrong for line in self._judged(row)]
        sums = ", ".join(f"{number} {verdict}" for verdict, number in report["summary"].items() if number)
        return _lines(*lines or ["No check has failed."], sums, self._more("conformance"))

    def run_checks(
        self,
        context: Context[None, Any],
        command: Annotated[str | None, doc("The command that runs your client once; default: --command.")] = None,
        hook: Annotated[
            str | None, doc("Instead: the address to POST each check to, if your client is a service.")
        ] = None,
        checks: Annotated[list[str] | None, doc("Names of checks; default: all of them.")] = None,
        group: Annotated[Name | None, doc("All checks of this group, such as payments.")] = None,
    ) -> str:
        """Run your client by a plan: each check on a bank of its own, with the fault that shows whether it is right.

        BANK_URL, BANK_CERTIFICATE, BANK_KEY, BANK_TASK and the rest stand in its environment (the manual, page
        judge-your-client). A check takes up to 30 s, so begin with a few.
        """
        from emulator.conformance.program import Program
        from emulator.conformance.runner import ANSWER_SECONDS, Plan, run, silence

        if command is not None and not self._desk.runs_commands:
            raise Failed("over HTTP the server runs only the command that it was started with: mcp --command CMD")
        command = command or (None if hook else self._desk.own_command)
        if (command is None) == (hook is None):
            raise Failed("name either the command that runs your client or its hook")
        if command is not None:
            runnable(command)
        if hook is not None and not hook.startswith(("http://", "https://")):
            raise Failed("hook takes an http or https address")
        asked = chosen(tuple(checks or ()), (group,) if group else ())
        lines = []
        outcomes = []
        with self._desk.running() as stopped:
            plan = Plan(Program(command, hook, timeout=CHECK_TIMEOUT, stopped=stopped))
            for outcome in run(asked, self._desk.url, plan, partial(self._desk.connect, timeout=ANSWER_SECONDS)):
                if stopped.is_set():
                    raise Failed("the server ends")  # before the thread waits for the loop, which is ending
                outcomes.append(outcome)
                number = len(outcomes)
                from_thread.run(context.report_progress, number, len(asked), outcome.row["check"])
                if outcome.row["verdict"] in ("fail", "warn") or outcome.problems:
                    lines += [*self._judged(outcome.row), *(f"  {problem}" for problem in outcome.problems)]
                else:
                    lines.append(f"{outcome.row['verdict']} {outcome.row['check']}")
        if (silent := silence(outcomes)) is not None:
            raise Failed(silent)
        return _lines(*lines, f"more: {self._desk.url}/docs/reference/checks")

    def _judged(self, row: Mapping[str, Any]) -> Iterable[str]:
        """The verdict of one check, its failures, and what a good TPP does."""
        yield f"{row['verdict']} {row['check']} ({row['level']}): {row['about']}"
        for failure in row["failures"][:3]:
            yield f"  {failure['text']}"
            yield from self._place(failure)
        if row["verdict"] in ("fail", "warn"):
            [known] = chosen((row["check"],), ())
            yield f"  right: {known.advice.strip()}"
        yield f"  more: {self._desk.url}/docs/reference/checks#{row['check']}"

    def _place(self, failure: Mapping[str, Any]) -> Iterable[str]:
        """Where a client went wrong: the request that was the occasion, and what it sent in place of the right one."""
        log = {row["id"]: row for row in self._desk.ask("GET", "requests?limit=1000")["requests"]}
        known = [log[number] for number in failure["requests"] if number in log]
        if not known or failure.get("instead"):
            yield f"  occasion: {failure['occasion']}"
        yield from (f"  occasion: {self._shown(row)}" for row in known[:1])
        if failure.get("instead"):
            yield f"  instead: {failure['instead']}"
        elif known:
            members = ("operation", "tpp")
            alike = [row for row in log.values() if all(row.get(name) == known[0].get(name) for name in members)]
            later = [row for row in alike if int(row["id"]) > int(known[0]["id"])]  # newest first
            yield f"  after it: {self._shown(later[-1])}" if later else "  after it: no such request"

    def _shown(self, row: Mapping[str, Any]) -> str:
        """The line of a request with its X-Request-ID."""
        headers = logged(self._desk.connect(self._desk.url), row["id"])["request"]["headers"]
        identity = next((value for name, value in headers if name.lower() == "x-request-id"), "none")
        return f"{request_line(row)}, X-Request-ID {one_line(identity)}"

    # The manual

    def manual(
        self,
        topic: Annotated[
            str, doc("Words to search for, an error code, a setting, or a page such as payments#amounts.")
        ],
    ) -> str:
        """Search the manual of the bank: rules of the interface, errors, headers, settings, scenarios, how-tos.

        Use it before you guess how the bank or the interface behaves.
        """
        named = manual.named(topic)
        if named:
            texts = [_cut(one.text.strip(), LONGEST_PAGE) for one in named]
            return _lines(*texts, f"more: {self._desk.url}/docs/{named[0].address.strip('/')}")
        hits = manual.search(topic, manual.entries())[:MOST_HITS]
        if not hits:
            raise Failed(f"the manual has nothing about {topic}; use fewer or other words")
        lines = [f"{hit.entry.address.strip('/')}: {''.join(hit.parts)}" for hit in hits]
        return _lines(*lines, f"more: {self._desk.url}/docs/search?{urlencode({'q': topic})}")

    def _more(self, *path: str) -> str:
        return "more: " + "/".join([f"{self._desk.url}/console", *(quote(part, safe="!=") for part in path)])


_DISTINGUISHING = ("x-request-id", "psu-id", "tpp-session-id")  # headers that distinguish requests
_CLEARED = {
    "rules": ("DELETE", "scenario", "the rules of all scenarios"),
    "requests": ("DELETE", "requests", "the request log"),
    "report": ("DELETE", "conformance", "the report of the audit"),
    "bank": ("POST", "reset", "all data of the bank but its snapshots, which returns to what it was made with"),
}
Effect = Literal["reads", "changes", "deletes", "runs"]
# What each tool may do: read, change the bank, delete data of it, run a program of the developer.
TABLE: Mapping[str, Effect] = {
    "open_bank": "changes",
    "people": "reads",
    "send_request": "changes",
    "requests": "reads",
    "explain": "reads",
    "customer": "changes",
    "clock": "changes",
    "ledger": "reads",
    "scenarios": "reads",
    "apply_scenario": "deletes",
    "clear": "deletes",
    "audit": "reads",
    "run_checks": "runs",
    "manual": "reads",
}


def _lines(*lines: str | None) -> str:
    return "\n".join(line for line in lines if line)


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text) - most} more characters)"


def _scenario_body(scenario: str | dict[str, Any], parameters: dict[str, Any] | None) -> dict[str, Any]:
    """The body of applyScenario for a name, YAML text or JSON."""
    from emulator.scenario import loader
    from emulator.scenario.loader import ScenarioRefused

    if isinstance(scenario, str) and not {"\n", "{", ":"} & set(scenario):
        return {"name": scenario, "parameters": parameters or {}}
    try:
        value, origin = (
            loader.parsed(scenario, "scenario") if isinstance(scenario, str) else (scenario, loader.Origin("scenario"))
        )
        return dict(loader.read(value, origin, parameters).source)
    except ScenarioRefused as refused:
        raise Failed(f"nothing was changed: {'; '.join(refused.lines())}") from refused
