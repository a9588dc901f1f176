"""The sandbox CA of a service: its keys and its TPPs are rows of the shared store, and files beside each process.

The command line on the machine of a process signs with the files, and `tpp new` adds a folder to them. The process
takes that into the store, and writes what others have stored to files.
"""

from __future__ import annotations

import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from emulator.assemble.copying import CA_FILES
from emulator.bank.errors import BankError
from emulator.bank.threads import LASTS, in_thread
from emulator.ca import AuthorityDamaged, CertificateAuthority, Credentials, TppExists
from emulator.ca.files import ca_file, make_private, write_folder, write_private
from emulator.store import StoreError, StoreUncertain
from emulator.store.postgres.connection import Server, StoredDataDamaged, StoreUnreachable, unwritable

logger = logging.getLogger(__name__)

CA, ANSWERS, TPP, LOGOUT = "ca", "answers", "tpp", "logout"
CREDENTIAL_FILES = ("certificate.pem", "key.pem")

Secret = tuple[str, str, int, bytes]
"""Kind, name, version and body (JSON) of what is stored."""

Pending = dict[tuple[str, str], tuple[dict[str, bytes], bool]]
"""By kind and name: files, and whether they may replace what is stored."""

READ = (
    "SELECT kind, name, version, body FROM {schema}.secret"
    " WHERE version > %s AND kind IN ('ca', 'answers', 'tpp', 'logout') ORDER BY version, kind, name"
)
FORGET = "DELETE FROM {schema}.secret WHERE kind = 'logout' AND name < %s"
# The row of the layout is locked until the end, so that versions become visible in their order.
KEEP = (
    "WITH news AS (UPDATE {schema}.layout SET news = news + 1 RETURNING news)"
    " INSERT INTO {schema}.secret AS s (kind, name, version, body) SELECT %s, %s, news, %b FROM news"
    " ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, body = excluded.body WHERE %s"
    " RETURNING version"
)


class StoredAuthority(CertificateAuthority):
    """The CA whose secrets are stored, or a new one; what it issues is `pending` until it is stored too.

    Raises StoreError where `directory` belongs to another CA.
    """

    def __init__(
        self, directory: Path, secrets: Iterable[Secret], server: Server, *, clock: Callable[[], datetime]
    ) -> None:
        self.pending: Pending = {}
        self._server = server
        self.ended: dict[str, int] = {}  # logins to the console, by id, with their times
        self.version = 0  # of the last secret that was read
        self._place = directory
        self._refused: set[str] = set()  # folders that are no TPP
        read = list(secrets)
        stored = {(kind, name): files_of(kind, name, body) for kind, name, _, body in read}
        if (CA, "") in stored:
            _place_ca(directory, stored[CA, ""])
        super().__init__(directory, clock=clock)
        if (CA, "") not in stored:
            self.pending[CA, ""] = {name: ca_file(directory, name).read_bytes() for name in CA_FILES}, False
        if (ANSWERS, "") in stored:
            _mirror(directory / "bank", stored[ANSWERS, ""])
        answers = self.answer_credentials()
        files = {"certificate.pem": answers.certificate_pem.encode(), "key.pem": answers.key_pem}
        if stored.get((ANSWERS, "")) != files:
            self.pending[ANSWERS, ""] = files, True
        self._directory = None  # TPPs are those that are stored
        for secret in read:
            self._take(*secret)

    def _take(self, kind: str, name: str, version: int, body: bytes) -> bool:
        """Add what is stored; whether it is a TPP that is new here."""
        self.version = max(self.version, version)
        files = files_of(kind, name, body)
        if kind == LOGOUT:
            started, _, identity = name.partition(".")
            self.ended[identity] = int(started) if started.isdecimal() else 0
        known = self._in_memory.get(name)
        if kind != TPP or (known is not None and known.certificate_pem.encode() == files["certificate.pem"]):
            return False
        self._enter(name, files)
        return True

    def learn(self, secrets: Iterable[Secret]) -> list[str]:
        """Add what others have issued, READ since `version`; the names of TPPs that are new here."""
        new = []
        for secret in sorted(secrets, key=itemgetter(2)):
            try:
                # else read at the same time for something else
                if secret[2] > self.version and self._take(*secret):
                    new.append(secret[1])
            except StoredDataDamaged as error:  # one TPP is missing, and nothing else
                logger.error("%s", error)
        return new

    def lasting(self, *, after_changes: bool = False) -> Generator[object, None, None]:
        pending, self.pending = self.pending, {}  # at once: nobody else stores it
        if not pending:
            return
        try:
            if after_changes:
                yield LASTS
            keeping = self._keep(pending, self._server.rows)
            yield from in_thread(lambda: self._server.submit(keeping).result(), lasts=True)
        except TppExists as error:
            raise BankError("CONFLICT", f"The TPP {error} was issued by another process.", "name") from error
        except StoreUnreachable as error:
            raise (StoreUncertain(f"the bank is stored: {error}") if after_changes else unwritable(error)) from error
        finally:
            self._withdraw(pending)

    async def keep(self, rows: Callable[..., Awaitable[Sequence[Any]]]) -> None:
        """Store what is pending by `rows`; StoreUnreachable, TppExists for a name that another process has given."""
        pending, self.pending = self.pending, {}
        await self._keep(pending, rows)

    async def _keep(self, pending: Pending, rows: Callable[..., Awaitable[Sequence[Any]]]) -> None:
        """Store these; what could not be stored was not issued."""
        try:
            for (kind, name), (files, replace) in [*pending.items()]:
                if not await rows(KEEP, kind, name, secret_of(files), replace, again=False):
                    raise TppExists(name)
                del pending[kind, name]
                if kind == TPP:
                    _mirror(self._place / "tpps" / name, files)
        finally:
            self._withdraw(pending)

    def _withdraw(self, pending: Pending) -> None:
        """Forget what was not stored."""
        for _, name in pending:
            self._in_memory.pop(name, None)
            self.version = 0  # the next refresh brings back what was replaced

    def _enter(self, name: str, files: dict[str, bytes]) -> None:
        try:
            certificate = x509.load_pem_x509_certificate(files["certificate.pem"])
        except ValueError as error:
            raise StoredDataDamaged(f"the secret {TPP} {name}", error) from error
        self._in_memory.pop(name, None)  # so that it is the newest
        self._in_memory[name] = Credentials(name, certificate, files["key.pem"])
        _mirror(self._place / "tpps" / name, files)

    def log_out(self, identity: str, started: int) -> Generator[object, None, None]:
        """End a login to the console, by a row that is named so that those of old logins come first."""
        self.ended[identity] = started
        self.pending[LOGOUT, f"{started}.{identity}"] = {}, True
        yield from self.lasting()

    def adopt(self) -> None:
        """Take the TPPs that `tpp new` has added beside this process, the oldest first."""
        try:
            folders = [folder for folder in (self._place / "tpps").iterdir() if folder.name[0] != "."]
            new = [folder for folder in folders if folder.name not in self._in_memory.keys() | self._refused]
            new.sort(key=lambda folder: folder.stat().st_mtime_ns)
        except OSError:  # there are none, or one of them is being replaced
            return
        for folder in new:
            try:
                files = {file.name: file.read_bytes() for file in folder.iterdir()}
                check_pair(files, *CREDENTIAL_FILES)
            except (OSError, ValueError, KeyError) as error:
                self._refused.add(folder.name)
                reason = f"{error} is missing" if isinstance(error, KeyError) else error
                logger.warning("%s is not taken as a TPP: %s", folder, reason)
                continue
            self.pending[TPP, folder.name] = files, False
            self._enter(folder.name, files)

    @contextmanager
    def _stored(self, credentials: Credentials, keystore_password: str | None, *, replace: bool) -> Iterator[None]:
        files = {"certificate.pem": credentials.certificate_pem.encode(), "key.pem": credentials.key_pem}
        if keystore_password is not None:
            files["keystore.p12"] = credentials.keystore(keystore_password)
        with super()._stored(credentials, None, replace=replace):
            yield
            self.pending[TPP, credentials.name] = files, replace


def secret_of(files: dict[str, bytes]) -> bytes:
    """The body of a secret: its files by name."""
    return json.dumps({name: b64encode(content).decode() for name, content in files.items()}).encode()


def files_of(kind: str, name: str, body: bytes, *, checked: bool = False) -> dict[str, bytes]:
    """The files in the body of a secret; StoredDataDamaged unless it has all that one of this kind needs.

    `checked`: and the certificate and the key belong together.
    """
    needed = {CA: CA_FILES, LOGOUT: ()}.get(kind, CREDENTIAL_FILES)
    try:
        files = {file: b64decode(content) for file, content in json.loads(body).items()}
        for file in needed:
            if file not in files:
                raise ValueError(f"{file} is missing")
        if checked and needed:
            check_pair(files, *needed)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoredDataDamaged(f"the secret {kind} {name}".rstrip(), error) from error
    return files


def check_pair(files: dict[str, bytes], certificate: str, key: str) -> None:
    """ValueError unless these two files are a certificate and its key; KeyError if one is missing."""
    try:
        public = x509.load_pem_x509_certificate(files[certificate]).public_key()
        belongs = load_pem_private_key(files[key], None).public_key() == public
    except TypeError as error:  # the key has a password
        raise ValueError(error) from error
    if not belongs:
        raise ValueError(f"{key} is not the key of {certificate}")


def _mirror(folder: Path, files: dict[str, bytes]) -> None:
    """Write these files to a folder of the state directory; a failure is only logged, as the store has them."""
    try:
        if any(not (folder / name).exists() or (folder / name).read_bytes() != files[name] for name in files):
            write_folder(folder, files, replace=True)
    except OSError as error:
        logger.warning("%s cannot be written: %s", folder, error.strerror or error)


def _place_ca(directory: Path, files: dict[str, bytes]) -> None:
    """Write the files of the stored CA, unless they are there."""
    certificate = directory / "ca.pem"
    if certificate.exists():
        if certificate.read_bytes() != files["ca.pem"]:
            raise StoreError(
                f"{certificate} is the certificate of another sandbox CA than that of the store: name another --state"
            )
        return
    try:
        for folder in (directory, ca_file(directory, "ca-key.pem").parent):
            make_private(folder, power=False)
        write_private(ca_file(directory, "ca-key.pem"), files["ca-key.pem"])
        write_private(certificate, files["ca.pem"])
    except OSError as error:
        raise AuthorityDamaged(f"{directory}: {error.strerror}") from error
