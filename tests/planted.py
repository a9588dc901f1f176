"""Faults to plant in the bank, and whether the tests find them: `python -m tests.planted`.

A suite that is made faster must find what it found before. Each fault is a change of one line: money, a limit, a
moment, a refusal. It is planted in a copy of the tree, and the tests that are named with it are run there, until one
fails. With words only the faults whose file or text has one of them are planted; `--with` runs other tests. A fault
quotes the line that it changes: who changes that line changes it here, too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PATIENCE = 600  # seconds: with some faults a test waits for ever
COPIED = ("emulator", "tests", "fixtures", "scenarios", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")


class Fault(NamedTuple):
    """`old` stands once in the file (of emulator/) and becomes `new`; `tests`: where it is found."""

    file: str
    old: str
    new: str
    about: str
    tests: str


FAULTS = (
    Fault(
        "bank/money.py",
        "MOST_DIGITS = 18",
        "MOST_DIGITS = 19",
        "an amount may have 19 digits",
        "unit/formats/test_money.py",
    ),
    Fault(
        "bank/money.py",
        "BIF BYR CLP DJF GNF ISK",
        "BIF BYR CLP DJF GNF",
        "ISK has two minor units",
        "unit/formats/test_money.py",
    ),
    Fault(
        "bank/accounts/ledger.py",
        ' + Decimal(account["creditLine"])',
        "",
        "the credit line cannot be spent",
        "unit/payments/test_ledger.py unit/accounts",
    ),
    Fault(
        "bank/accounts/ledger.py",
        'plain(Decimal(account["reserved"]) - released, account["currency"])',
        'plain(Decimal(account["reserved"]), account["currency"])',
        "a booked pending item stays reserved",
        "unit/payments/test_ledger.py unit/accounts",
    ),
    Fault(
        "bank/money.py",
        "quantize(amount * rate, target, ROUND_HALF_UP)",
        "quantize(amount * rate, target)",
        "a converted amount is rounded half to even",
        "unit/payments/test_exchange.py",
    ),
    Fault(
        "bank/settlement.py",
        "if not chosen or (whole and len(chosen) < len(waiting)):",
        "if not chosen:",
        "a bulk for all or nothing begins with a part of the money",
        "unit/payments/test_bulk.py",
    ),
    Fault(
        "bank/scheme/execution.py",
        "approved.time() > CUT_OFF:",
        "approved.time() >= CUT_OFF:",
        "an approval at 14:00:00 is too late",
        "unit/formats/test_calendar.py unit/payments/test_progression.py",
    ),
    Fault(
        "bank/scheme/execution.py",
        "(-3, -2, 1, 39, 50)",
        "(-3, -2, 1, 39, 49)",
        "Whit Monday is a banking day",
        "unit/formats/test_calendar.py",
    ),
    Fault(
        "bank/scheme/execution.py",
        "min(schedule.day or schedule.start.day, last)",
        "min(schedule.day or 1, last)",
        "a standing order without a day is executed on the 1st",
        "unit/formats/test_schedule.py",
    ),
    Fault(
        "bank/payment/progression.py",
        "HALF_SIGNED_LIFETIME = timedelta(days=30)",
        "HALF_SIGNED_LIFETIME = timedelta(days=31)",
        "a half signed payment waits for 31 days",
        "unit/payments/test_progression.py unit/payments/test_signing.py",
    ),
    Fault(
        "bank/payment/flows.py",
        'elif bank.clock.stamp() >= payment["giveUpAt"]:',
        'elif bank.clock.stamp() > payment["giveUpAt"]:',
        "a payment without money is tried once too often",
        "unit/payments/test_progression.py",
    ),
    Fault(
        "bank/scheme/transitions.py",
        '"PART": "PATC"',
        '"PART": "ACTC"',
        "a basket with a partly paid member counts as authorised",
        "unit/payments/test_baskets.py",
    ),
    Fault(
        "bank/payment/flows.py",
        "tries = 10",
        "tries = 11",
        "an instant payment waits 11 minutes for money",
        "unit/payments/test_progression.py",
    ),
    Fault(
        "bank/payment/initiation.py",
        'if other["status"] not in DEAD:',
        'if other["status"] in DEAD:',
        "a duplicate is found among dead payments only",
        "unit/payments/test_initiation.py",
    ),
    Fault(
        "bank/payment/baskets.py",
        'elif "basketId" in payment:',
        'elif "basketIds" in payment:',
        "a payment may be in two baskets",
        "api/test_baskets.py",
    ),
    Fault(
        "bank/payment/payee.py",
        "CLOSE = 0.85",
        "CLOSE = 0.95",
        "a name with one wrong letter does not match",
        "unit/payments/test_payee.py",
    ),
    Fault(
        "bank/customers/sessions.py",
        "LIFETIME = timedelta(hours=1)",
        "LIFETIME = timedelta(hours=2)",
        "an SCA is valid for two hours",
        "unit/access",
    ),
    Fault(
        "bank/customers/access.py",
        "if exhausted or len(calls) >= UNATTENDED_CALLS:",
        "if exhausted or len(calls) > UNATTENDED_CALLS:",
        "five reads a day without the customer",
        "unit/access",
    ),
    Fault(
        "bank/customers/consents.py",
        "age(bank, consent) >= LIFETIME",
        "age(bank, consent) > LIFETIME",
        "a consent of exactly 180 days is valid",
        "unit/access",
    ),
    Fault(
        "bank/authentication/sca.py",
        "LIFETIME = timedelta(minutes=10)",
        "LIFETIME = timedelta(minutes=11)",
        "an SCA page is open for 11 minutes",
        "unit/access",
    ),
    Fault(
        "bank/sandbox/accounts.py",
        "    ledger.restate(bank, account_id, balance)\n",
        "    assert balance is not None\n",
        "posted history changes the balance",
        "api/test_sandbox_accounts.py",
    ),
    Fault(
        "bank/notifications.py",
        "200 <= self.status < 300",
        "200 <= self.status < 400",
        "a redirect counts as a delivery",
        "notifications",
    ),
    Fault(
        "bank/notifications.py",
        "        _overtake(bank, notification)\n",
        '        notification["copies"] = 2\n',
        "reordered notifications are doubled instead",
        "notifications",
    ),
    Fault(
        "api/render.py",
        "if name in requested or today >= since)",
        "if name in requested or today > since)",
        "a new form is the default a day late",
        "api/test_accept_fix.py",
    ),
    Fault(
        "api/gates.py",
        'if stored["print"] != fingerprint:',
        'if not stored["print"]:',
        "another request with a used X-Request-ID gets the stored answer",
        "unit/api/test_repeats.py",
    ),
    Fault(
        "api/gates.py",
        'if stored["created"] <= later(',
        'if stored["created"] < later(',
        "a repeat after exactly 24 hours gets the stored answer",
        "unit/api/test_repeats.py",
    ),
    Fault(
        "api/operations/accounts.py",
        "first = max(first, earliest)",
        "first = min(first, earliest)",
        "without the customer older transactions are shown",
        "api/test_accounts.py",
    ),
    Fault(
        "api/operations/accounts.py",
        "link(max(0, asked.offset - asked.limit))",
        "link(asked.offset - asked.limit)",
        "the link to the previous page has a negative offset",
        "api/test_accounts.py",
    ),
    Fault(
        "api/json_body.py",
        "DEEPEST = 32",
        "DEEPEST = 33",
        "a body may be nested 33 deep",
        "unit/formats/test_json_body.py",
    ),
    Fault(
        "bank/formats.py",
        "int(text) <= 65535",
        "int(text) <= 65536",
        "the port 65536 is accepted",
        "unit/formats/test_headers.py",
    ),
    Fault(
        "api/headers.py",
        '"psu-id" in headers and "psu-corporate-id" not in headers:',
        '"psu-id" in headers and "psu-id" not in headers:',
        "a corporate request needs no PSU-Corporate-ID",
        "unit/formats/test_headers.py api/test_gates.py",
    ),
    Fault(
        "api/guards.py",
        'return authority == _with_port(scheme, (host or "").lower()) or',
        'return authority.split(":")[0] == (host or "").lower().split(":")[0] or',
        "another port of this machine counts as the same origin",
        "api/test_control_gate.py unit/pages/test_guard.py",
    ),
    Fault(
        "api/guards.py",
        "if wrong <= _FREE:",
        "if wrong <= 100 * _FREE:",
        "tokens can be guessed without a pause",
        "api/test_control_gate.py",
    ),
    Fault(
        "api/log.py",
        "            if len(value) > 5:",
        "            if len(value) > 50:",
        "the request log shows identity numbers",
        "api/test_request_log.py",
    ),
    Fault(
        "api/render.py",
        "return gzip > 0 and gzip >=",
        "return gzip >=",
        "gzip with the weight 0 is sent",
        "unit/test_serve_encoding.py",
    ),
    Fault(
        "api/signature/rules.py",
        "if abs(difference) > skew:",
        "if difference > skew:",
        "an old Date is accepted",
        "unit/signature/test_gate.py",
    ),
    Fault(
        "api/signature/rules.py",
        "unlisted = [name for name in CANDIDATES if",
        "unlisted = [name for name in CANDIDATES[:3] if",
        "psu-id need not be signed",
        "unit/signature/test_gate.py",
    ),
    Fault(
        "api/certificates.py",
        "if key.key_size < SMALLEST_KEY:",
        "if key.key_size < SMALLEST_KEY // 2:",
        "an RSA key of 1024 bits is accepted",
        "unit/signature/test_certificates.py",
    ),
    Fault(
        "api/certificates.py",
        "return BOTH_ROLES if roles is None else roles",
        "return roles or BOTH_ROLES",
        "a certificate that grants no role has both",
        "unit/signature/test_certificates.py",
    ),
    Fault(
        "httpsig/signing.py",
        '(-1 if zone[0] == "-" else 1)',
        '(1 if zone[0] == "-" else -1)',
        "zones are added where they are to be subtracted",
        "unit/signature/test_gate.py",
    ),
    Fault(
        "httpsig/keyid.py",
        "if text != text.upper():",
        "if text not in (text.upper(), text.lower()):",
        "a serial number in lower case is accepted",
        "unit/signature/test_key_id.py",
    ),
    Fault(
        "httpsig/signing.py",
        'CANDIDATES = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri")',
        'CANDIDATES = ("date", "digest", "x-request-id", "psu-id", "psu-corporate-id")',
        "tpp-redirect-uri need not be signed",
        "unit/signature/test_gate.py unit/signature/test_round_trip.py",
    ),
    Fault(
        "ca/__init__.py",
        "if self._clock() >= certificate.not_valid_after_utc:",
        "if self._clock() < certificate.not_valid_before_utc:",
        "an expired certificate of demo is not renewed",
        "unit/ca",
    ),
    Fault(
        "ca/qcstatements.py",
        "for role, (oid, name) in _ROLES.items() if role in chosen]",
        "for role, (oid, name) in _ROLES.items()]",
        "every certificate has both roles",
        "unit/ca",
    ),
    Fault(
        "ca/files.py",
        "temporary.mkdir(mode=0o700)",
        "temporary.mkdir(mode=0o755)",
        "others may enter the folder of a key",
        "unit/ca",
    ),
    Fault(
        "client/signing.py",
        "if digest is not False and (content or digest) and",
        "if digest is not False and content and",
        "no Digest of an empty body, though it is asked for",
        "unit/client",
    ),
    Fault(
        "client/proxy.py",
        'parts.scheme == "http" and parts.port == self._port and',
        'parts.scheme == "http" and',
        "a page on another port may use the signing proxy",
        "unit/client/test_proxy.py",
    ),
    Fault(
        "client/proxy.py",
        "del self._nonces[nonce]",
        "self._nonces.move_to_end(nonce)",
        "a return address of the proxy works twice",
        "unit/client/test_proxy.py",
    ),
    Fault(
        "store/kinds.py",
        "else (*head, high, _TOP))",
        "else (*head, high))",
        "the upper bound of a range is left out",
        "unit/store/test_range.py",
    ),
    Fault(
        "store/snapshot.py",
        "and _head(sequence, check) != head[0]:",
        "and head[0] == b'':",
        "a damaged snapshot is read",
        "unit/store/test_image.py unit/store/test_directory.py",
    ),
    Fault(
        "store/table.py",
        "steps = [*former, *steps[since:]]",
        "steps = steps[since:]",
        "a snapshot that is saved before a large restore in the same turn is not written down",
        "unit/scenario/test_snapshots.py",
    ),
    Fault(
        "store/journal.py",
        "named = {*self.contents, *documents.contents()}",
        "named = self.contents",
        "a start deletes the contents of the snapshots",
        "unit/scenario/test_snapshots.py",
    ),
    Fault(
        "store/postgres/log.py",
        "for file in (*self.contents, *self._store.contents())}",
        "for file in self.contents}",
        "the next home deletes the contents of the snapshots",
        "postgres/test_contents.py",
    ),
    Fault(
        "store/journal.py",
        "if sequence != expected:",
        "if sequence < expected:",
        "a missing change is passed over",
        "unit/store/test_directory.py unit/store/test_inspection.py",
    ),
    Fault(
        "store/loaded.py",
        "numbers[-1 : -limit - 1 : -1]",
        "numbers[:limit]",
        "the oldest are found in place of the newest",
        "unit/store/test_find.py",
    ),
    Fault(
        "store/postgres/leases.py",
        "(until < now() OR home = %s)",
        "(until < now() + interval '1 hour' OR home = %s)",
        "a lease that is valid is taken",
        "postgres/test_homes.py",
    ),
    Fault(
        "assemble/registry.py",
        'stream = f"{name}:{number}"',
        "stream = name",
        "a bank that is made again repeats the ids of the old one",
        "api/test_control_bank.py",
    ),
    Fault(
        "assemble/registry.py",
        'links = asked.links if name == DEFAULT else "absolute"',
        "links = asked.links",
        "relative links of a named bank lead to the default one",
        "api/test_control_bank.py api/test_isolation.py",
    ),
    Fault(
        "bank/notifications.py",
        "if receivers[receiver] >= each or",
        "if receivers[receiver] > each or",
        "one receiver takes the place of another",
        "notifications",
    ),
    Fault(
        "failure.py",
        "status = 3",
        "status = 2",
        "damage does not exit with 3",
        "api/test_damaged_bank.py e2e/test_cli_tools.py api/test_start_refused.py",
    ),
    Fault(
        "cli/logs.py",
        "return count < REPEATS",
        "return count <= REPEATS",
        "a message is written once too often",
        "unit/test_log_writer.py",
    ),
    Fault(
        "cli/requests.py",
        "if fail and answer.status >= 400:",
        "if fail and answer.status >= 500:",
        "--fail lets a 400 pass",
        "e2e/test_cli_tools.py",
    ),
    Fault(
        "settings.py",
        "0 < int(parts[1]) < 65536:",
        "0 < int(parts[1]) <= 65536:",
        "--advertise takes the port 65536",
        "postgres/test_bad_input.py",
    ),
    Fault(
        "conformance/auditor.py",
        "if len(occasion.counted) > self.limit:",
        "if len(occasion.counted) >= self.limit:",
        "as many as are allowed are too many",
        "conformance/test_clauses.py conformance/test_checks.py",
    ),
    Fault(
        "conformance/auditor.py",
        'return occasion.concerned if self.kind == "each"',
        'return True if self.kind == "each"',
        "an occasion that nothing has decided is passed",
        "conformance/test_clauses.py",
    ),
    Fault(
        "conformance/report.py",
        'return int(bool(summary["fail"] or',
        'return int(bool(summary["fail"] or summary["warn"] or',
        "a warning ends the run with 1",
        "conformance/test_report.py",
    ),
    Fault(
        "conformance/check.py",
        'return "failed" if status in ("RJCT", "CANC")',
        'return "failed" if status == "RJCT"',
        "a cancelled payment is said to be open",
        "conformance/test_checks.py explore",
    ),
    Fault(
        "conformance/facts.py",
        'return "public" if address.is_global or documentation else',
        'return "public" if address.is_global else',
        "addresses for documentation count as private",
        "conformance/test_checks.py conformance/test_clauses.py",
    ),
    Fault(
        "explore/judge.py",
        'payment["created"] >= at:',
        'payment["created"] < at:',
        "an order that was paid after a decline is not found",
        "explore",
    ),
    Fault(
        "control/interface.py",
        'headers.get("sec-fetch-site") == "cross-site":',
        'headers.get("sec-fetch-site") == "same-site":',
        "a page of another site may change the bank",
        "api/test_control_gate.py",
    ),
    Fault(
        "control/operations/banks.py",
        "json_response(201 if is_new else 200, shown)",
        "json_response(201, shown)",
        "a bank that is replaced is said to be new",
        "api/test_control_bank.py api/test_bank_folders.py api/test_long_work.py",
    ),
    Fault(
        "scenario/rule.py",
        "return matched % self.every == 0",
        "return matched % self.every == 1",
        "every: N acts on the first of N",
        "api/test_control_effects.py",
    ),
    Fault(
        "scenario/rule.py",
        "return matched > self.after",
        "return matched >= self.after",
        "after: N acts one match early",
        "api/test_control_effects.py",
    ),
    Fault(
        "scenario/effects/answer.py",
        "            response.headers.remove(JSON)\n",
        "            pass\n",
        "an answer has two content types",
        "api/test_control_effects.py api/test_control_scripted.py",
    ),
    Fault(
        "scenario/durations.py",
        "day = min(local.day,",
        "day = min(28, local.day,",
        "a month after the 31st is the 28th",
        "unit/scenario/test_durations.py",
    ),
    Fault(
        "scenario/steps/__init__.py",
        "if answer.lost != wanted.lost:",
        "if answer.lost and not wanted.lost:",
        "a story that expects no answer takes one",
        "unit/scenario/test_player.py",
    ),
    Fault(
        "scenario/rules.py",
        "                if kind not in taken:\n",
        "                if kind:\n",
        "a later rule takes the place of an earlier one",
        "api/test_control_effects.py",
    ),
    Fault(
        "testing/handles.py",
        "if rest < timedelta(0):",
        "if rest < timedelta(days=-2):",
        "bank.clock.advance goes back",
        "e2e/test_plugin.py",
    ),
    Fault(
        "testing/plugin.py",
        "session.exitstatus = pytest.ExitCode.TESTS_FAILED",
        "session.exitstatus = pytest.ExitCode.OK",
        "--bank-audit passes with failed checks",
        "conformance/test_audit.py",
    ),
    Fault(
        "testing/running.py",
        "            self._must_match.add(read.name)\n",
        "            pass\n",
        "must_match is not looked after",
        "e2e/test_plugin.py",
    ),
    Fault(
        "web/wire.py",
        "has_body = response.status not in (204, 304)",
        "has_body = response.status not in (304,)",
        "a 204 has a Content-Length",
        "unit/web/test_answers.py e2e/test_wire_connections.py",
    ),
    Fault(
        "web/wire.py",
        'if _HOST.fullmatch(message.headers.get(HOST, "")) is None:',
        'if _HOST.match(message.headers.get(HOST, "")) is None:',
        "any Host is taken that begins as one",
        "e2e/test_wire_refusals.py unit/web/test_refusals.py",
    ),
    Fault(
        "web/pages/browser.py",
        "; HttpOnly; ",
        "; ",
        "scripts can read the cookie of a login",
        "unit/pages/test_console_entry.py unit/pages/test_my.py unit/pages/test_guard.py",
    ),
    Fault(
        "web/console/handler.py",
        "LIFETIME = timedelta(hours=12)",
        "LIFETIME = timedelta(hours=13)",
        "a login to the console lasts for 13 hours",
        "unit/pages/test_console_entry.py",
    ),
    Fault(
        "web/pages/wording.py",
        "local = moment(at).astimezone(OSLO)",
        "local = moment(at)",
        "pages show the time of Greenwich",
        "unit/pages/test_wording.py",
    ),
    Fault(
        "web/pages/my_pages.py",
        'if not self._guard.is_token(self._purpose(), form.get("csrf")):',
        'if not self._guard.is_token("my login", form.get("csrf")):',
        "a forged form is taken at /my",
        "unit/pages/test_my.py",
    ),
    Fault(
        "web/notification_client.py",
        "allow_redirects=False",
        "allow_redirects=True",
        "notifications follow redirects",
        "notifications/test_client.py",
    ),
)


class Unfit(Exception):
    """The line of a fault is not in its file any more: the list has to follow the code."""


@contextmanager
def planted(fault: Fault, tree: Path) -> Iterator[None]:
    """The tree with the fault."""
    path = tree / "emulator" / fault.file
    text, times = path.read_text(encoding="utf-8"), path.stat()
    if text.count(fault.old) != 1:
        raise Unfit(f"{fault.file} has {text.count(fault.old)} times {fault.old!r}")
    path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled modules go by it


def found_by(tree: Path, tests: list[str]) -> str | None:
    """The first test that fails in the tree, or what fails before there is one; None if all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", "-m", "not long", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"no end after {PATIENCE} s"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if failed is None:
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed[1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description="Plant faults and run tests.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="faults whose file or text has one of these")
    parser.add_argument("--with", dest="tests", action="append", metavar="TESTS", help="run these tests instead")
    parser.add_argument("--list", action="store_true", help="print the faults and plant none")
    asked = parser.parse_args()
    chosen = [
        fault
        for fault in FAULTS
        if not asked.words or any(word in f"{fault.file} {fault.about}" for word in asked.words)
    ]
    if asked.list:
        print("\n".join(f"{fault.file}: {fault.about}" for fault in chosen))
        return 0
    missed = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        tree = Path(folder)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, tree / name)
        for fault in chosen:
            try:
                with planted(fault, tree):
                    seen = found_by(tree, asked.tests or [f"tests/{path}" for path in fault.tests.split()])
            except Unfit as error:
                seen = None
                print(error, file=sys.stderr)
            missed += seen is None
            print(f"{'MISSED' if seen is None else 'found'} {fault.file}: {fault.about} [{seen}]", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults are found")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
