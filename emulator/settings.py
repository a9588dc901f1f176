"""The settings of a process: flags and environment variables (flags.md). Only this module reads variables
BANK_EMULATOR_*.

Each flag is declared once, as a member of ServeSettings: name, type, default, parser and help. The command line, its
help, the variables and the manual's table come from it (`FLAGS`); what it excludes or requires is checked by hand (here
what a value can say, in `cli/serve.py` what two flags say) and told below the table in flags.md. It is read where it is
used: what concerns a bank in `assemble/registry.py`, what concerns the process in the other modules of `assemble` (the
log of requests is switched in `composition.py`) and in `cli/serve.py`. One that processes of a store must have alike is
in `SHARED` (`assemble/joining.py`), one that a test may set also in `testing/handles.BankOptions`. Tests:
`tests/unit/test_serve_settings.py`, with the name of each flag in order and a value of most, and
`tests/e2e/test_serve.py`, with what it does. `python -m tests.docs.sections` writes flags.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from emulator import packaged
from emulator.bank.formats import Format, matching, one_of
from emulator.bank.notification_targets import Host, MalformedAddress, allowed_host
from emulator.bank.settings import TAKES
from emulator.failure import Failed
from emulator.httpsig.sendable import address_of

PREFIX = "BANK_EMULATOR_"
EMBEDDED = "postgresql"  # --store with this word starts an embedded server
SCHEMA = "bank_emulator"
OF_A_STORE = ("store-schema", "store-connections", "advertise")  # flags that mean nothing without --store
KEYSTORE_PASSWORD = "bank-emulator"  # of keystore.p12 of a TPP, unless somebody chooses another one
_SEARCH_PATH = re.compile(r'search_path=\s*"?([a-z_][a-z0-9_]{0,62})"?(?=[\s,]|$)')

Parse = Callable[[str], Any]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of `serve`: its metavar, parser, one line of help, and its name without dashes."""

    takes: str
    parse: Parse
    help: str
    repeatable: bool
    switch: bool
    name: str = ""

    @property
    def member(self) -> str:
        """The member of ServeSettings that it sets."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable that sets it too."""
        return PREFIX + self.member.upper()

    @property
    def default(self) -> str | None:
        """The default as it is shown; None if there is none, or if it is a switch."""
        default = getattr(ServeSettings(), "fixture" if self.member == "fixtures" else self.member)
        values = default if isinstance(default, tuple) else (default,)
        return ", ".join(map(str, values)) if default not in (None, (), False) else None


def flag(default: Value, takes: str, parse: Parse, about: str) -> Value:
    """A member of ServeSettings that a flag sets: repeatable if it is a tuple, a switch if it is true or false."""
    of = Flag(takes, parse, about, repeatable=isinstance(default, tuple), switch=isinstance(default, bool))
    return field(default=default, metadata={"flag": of})


def _text(value: str) -> str:
    if "\x00" in value or not value:
        raise ValueError("takes a value")
    return value


def _path(value: str) -> Path:
    return Path(_text(value))


def _address(value: str) -> str:
    """A host name or address; IPv6 with or without brackets."""
    return _text(value.removeprefix("[").removesuffix("]"))


def _number(what: str, least: int, most: int) -> Parse:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,6}", value) or not least <= int(value) <= most:
            raise ValueError(f"takes {what}, {least} to {most}")
        return int(value)

    return parse


def _fitting(form: Format, read: Callable[[str], Any] = str) -> Parse:
    """Text of this format."""

    def parse(value: str) -> Any:
        expected = form.check(value)
        if expected is not None:
            raise ValueError(f"takes {expected}")
        return read(value)

    return parse


_seed = _fitting(matching(r"-?[0-9]{1,18}", "a whole number of at most 18 digits"), int)
_token = _fitting(matching(r"[!-~]{1,512}", "1 to 512 printable ASCII characters without blanks"))
_schema = _fitting(matching(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", "a plain name in small letters, such as bank_emulator"))
_host_name = _fitting(
    matching(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})|\[?[0-9a-fA-F:.]+\]?", "a host name without scheme or port"),
    lambda value: value.strip("[]").lower(),
)
_ancestor = _fitting(
    matching(
        r"https?://[A-Za-z0-9.\[\]:-]+?(:([0-9]{1,5}|\*))?|\*",
        "the origin of a site, such as http://localhost:3000 or http://localhost:*, or *",
    )
)


def _url(value: str) -> str:
    with suppress(ValueError):
        if re.fullmatch("[!-~]+", value) and "@" not in address_of(value).netloc:
            return value.rstrip("/")
    raise ValueError("takes an http or https address, such as https://bank.example:8443")


def _store(value: str) -> str:
    if value != EMBEDDED and not re.match(r"postgres(ql)?://", value):
        raise ValueError(
            "takes postgresql://user:password@host/database, or the word postgresql for an embedded server"
        )
    if re.match(r"\w+://[^/?]*@[^/?]*@", value):
        raise ValueError("has an @ in user or password: write it as %40")
    if "search_path" in unquote(value) and _SEARCH_PATH.search(_options_of(value)) is None:
        raise ValueError("has a search_path whose first schema is no plain name in small letters; use --store-schema")
    return _text(value)


def schema_of(store: str, schema: str) -> str:
    """The schema of the tables: the one that is named, else the first of the search_path in the options of the URL."""
    path = _SEARCH_PATH.search(_options_of(store))
    return path[1] if path is not None and schema == SCHEMA else schema


def _options_of(url: str) -> str:
    options = re.search(r"[?&]options=([^&#]*)", url)
    return "" if options is None else unquote(options[1])


def _notified_host(value: str) -> Host:
    try:
        return allowed_host(value)
    except MalformedAddress as wrong:
        raise ValueError(f"takes HOST or HOST:PORT: {wrong}") from None


def _advertised(value: str) -> str:
    parts = re.fullmatch(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,252}|\[[0-9a-fA-F:.]+\])(?::([0-9]{1,5}))?", value)
    if parts is None:
        raise ValueError("takes HOST or HOST:PORT, an IPv6 address in brackets")
    if parts[1] is not None and not 0 < int(parts[1]) < 65536:
        raise ValueError("takes a port between 1 and 65535")
    return value


def data_folder(value: str) -> Path:
    """The folder of --data; raises ValueError if it is none."""
    folder = _text(value)
    if not os.path.isdir(folder):  # False too for what no path can be
        raise ValueError(f"takes a folder; there is none at {value}")
    if not any(os.path.isdir(os.path.join(folder, name)) for name in ("fixtures", "scenarios")):
        raise ValueError(f"takes a folder that holds folders fixtures or scenarios, as {value} does not")
    for one, other in packaged.same_names(Path(folder)):
        raise ValueError(f"has {one} and {other}: two files of one name")
    return Path(folder)


def _switch(value: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if value.lower() not in words:
        raise ValueError("takes true or false")
    return words[value.lower()]


_PORT = _number("a port number", 0, 65535)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The settings of `serve`, in the order of its help."""

    host: tuple[str, ...] = flag(
        ("127.0.0.1",), "ADDRESS", _address, "An address to listen on; may be repeated. localhost: IPv4 and IPv6."
    )
    port: int = flag(8080, "N", _PORT, "The port to listen on; 0 picks a free one.")
    tls_port: int | None = flag(None, "N", _PORT, "Also listen with TLS on this port; 0 picks a free one.")
    state: Path = flag(Path(".bank-emulator"), "DIR", _path, "The directory of certificates and stored data.")
    ephemeral: bool = flag(False, "", _switch, "Keep data in memory only.")
    store: str | None = flag(
        None,
        "URL",
        _store,
        "A PostgreSQL store, shared by processes: postgresql://..., or postgresql to start an embedded one.",
    )
    store_schema: str = flag(SCHEMA, "NAME", _schema, "The schema of the tables in PostgreSQL.")
    store_connections: int = flag(
        2,
        "N",
        _number("a number of connections", 1, 1000),
        "How many connections to PostgreSQL each process has at most.",
    )
    advertise: str | None = flag(
        None,
        "HOST[:PORT]",
        _advertised,
        "Where the other processes of the store reach this one; default: the address by which it reaches PostgreSQL.",
    )
    workers: int = flag(
        1,
        "N",
        _number("a number of processes", 1, 256),
        "How many processes serve the port; more than one requires --store.",
    )
    data: Path | None = flag(
        None,
        "DIR",
        data_folder,
        "A folder with fixtures and scenarios of your own, in folders of these names, beside the ready ones.",
    )
    # as named; see `fixture`
    fixtures: str | None = flag(None, "NAME|FILE", _text, "The data that the bank starts with and that reset restores.")
    scenario: tuple[str, ...] = flag((), "NAME|FILE", _text, "A scenario to apply at start; may be repeated.")
    profile: str = flag(
        "documented",
        "NAME",
        _fitting(TAKES["profile"]),
        "Default of the setting profile: documented or lenient (fewer required headers).",
    )
    links: str = flag(
        "relative", "FORM", _fitting(TAKES["links"]), "Default of the setting links: relative or absolute."
    )
    weather: str = flag(
        "calm",
        "NAME",
        _fitting(TAKES["weather"]),
        "Default of the setting weather: calm, or rough (answers are sometimes lost, late or 503).",
    )
    ids: str = flag("uuid", "FORM", _fitting(one_of("uuid", "opaque")), "The form of ids: uuid or opaque.")
    seed: int | None = flag(None, "N", _seed, "Make ids and generated data repeat from run to run.")
    control_token: str | None = flag(
        None, "TOKEN", _token, "The token required by /_emulator and by the login of /console."
    )
    metrics_token: str | None = flag(None, "TOKEN", _token, "A token that opens /metrics and nothing else.")
    public_url: str | None = flag(None, "URL", _url, "The address of this bank for others, used in absolute links.")
    durability: str = flag(
        "process",
        "LEVEL",
        _fitting(one_of("process", "power")),
        "What answered changes survive: process (a crash of the process) or power (a power failure).",
    )
    idle_hours: int = flag(
        24,
        "N",
        _number("a number of hours", 0, 999_999),
        "Unload a named bank from memory after N hours without a request; 0: never.",
    )
    allow_host: tuple[str, ...] = flag((), "NAME", _host_name, "An additional Host name to accept; may be repeated.")
    frame_ancestors: tuple[str, ...] = flag(
        (),
        "ORIGIN",
        _ancestor,
        "A site that may show the customer's pages in frames, for browser tests; may be repeated.",
    )
    allow_notify: tuple[Host, ...] = flag(
        (),
        "HOST[:PORT]",
        _notified_host,
        "A host, also a private one, that may receive notifications; may be repeated.",
    )
    log_format: str = flag(
        "text", "FORM", _fitting(one_of("text", "json")), "The form of the log on stderr: text or json."
    )
    ready_file: Path | None = flag(
        None,
        "FILE",
        _path,
        "Write address, CA, certificate, key and process id to this file (JSON) once the bank answers.",
    )
    print_env: bool = flag(
        False, "", _switch, "Print these as lines for a shell, `export BANK_EMULATOR_URL=...`, in place of READY."
    )

    @property
    def fixture(self) -> str:
        """What new banks start with."""
        return self.fixtures or "known-state"

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names that a Host header may have, besides those of loopback."""
        return (*self.host, *self.allow_host)


FLAGS: tuple[Flag, ...] = tuple(
    replace(member.metadata["flag"], name=member.name.replace("_", "-")) for member in fields(ServeSettings)
)


def read(flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> ServeSettings:
    """The settings from `flags` (by member: a string, several, or None if not given), else from `environment`.

    A variable that is set but empty counts as not set (assumed). Raises Failed, which names the flag or variable.
    """
    if environment is None:
        environment = os.environ
    values_given: dict[str, Any] = {}
    for known in FLAGS:
        given = flags.get(known.member)
        if given is not None and given != ():
            source, values = f"--{known.name}", [given] if isinstance(given, str) else list(given)
        elif variable := environment.get(known.variable):
            source, values = known.variable, _parts(variable) if known.repeatable else [variable]
        else:
            continue
        try:
            parsed = tuple(known.parse(value) for value in values)
        except ValueError as error:
            raise Failed(f"{source} {error}", page="flags") from None
        if parsed:  # a variable of commas alone is empty
            values_given[known.member] = parsed if known.repeatable else parsed[0]
    for known in FLAGS:
        if known.name in OF_A_STORE and flags.get(known.member) is not None and "store" not in values_given:
            raise Failed(f"--{known.name} requires --store", page="flags")
    return ServeSettings(**values_given)


def _parts(value: str) -> list[str]:
    return [part.strip() for part in re.split(r"[,\n]", value) if part.strip()]


def variable(name: str) -> str | None:
    """The variable BANK_EMULATOR_<NAME>, for commands other than `serve`; None if unset or empty."""
    return os.environ.get(PREFIX + name) or None
