"""The issuing side: sandbox CA, TPP certificates with PSD2 QCStatements, the bank's own certificates.

It depends on no other package of the emulator and knows nothing of the bank. Here is the CA with the certificates that
it issued, in a state directory or in memory.
"""

from __future__ import annotations

import hmac
import re
import ssl
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from unicodedata import normalize

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from emulator.ca import certificates
from emulator.ca.certificates import FLAWS, CertificateContent, Credentials, Issuer, IssueRefused, pem, private_pem
from emulator.ca.files import (
    ca_file,
    check_private,
    claim_private,
    folder_written,
    make_private,
    sweep,
    write_folder,
    write_private,
)
from emulator.failure import Damaged

__all__ = [
    "FLAWS", "ROLES", "TPP_NAME", "AuthorityDamaged", "CertificateAuthority", "Credentials", "IssueRefused",
    "TppExists", "tpp_name",
]  # fmt: skip

DEMO = "demo"
ROLES = ("PISP", "AISP")
_LETTERS = "A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"  # with those of the languages in Latin script
TPP_NAME = re.compile(f"[{_LETTERS}](?:[{_LETTERS} ._-]{{0,61}}[{_LETTERS}])?")
_IDENTIFIER = re.compile(r"(?=.*\S)[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,256}")
_CERTIFICATE, _KEY, _KEYSTORE = "certificate.pem", "key.pem", "keystore.p12"
_UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


class AuthorityDamaged(Damaged):
    """A file of the CA or of a TPP cannot be read; the text names it."""


class TppExists(Exception):
    """A TPP with this name already exists; the argument is the name."""


def tpp_name(name: str, member: str = "name") -> str:
    """The name of a TPP in NFC; raises IssueRefused."""
    name = normalize("NFC", name)
    if not TPP_NAME.fullmatch(name):
        text = (
            "A TPP name has 1 to 63 letters, digits, blanks, dots, dashes or underscores, the first and the "
            "last a letter or digit."
        )
        raise IssueRefused(text, member)
    return name


class CertificateAuthority:
    """The sandbox CA. `clock` returns the real time (aware), which dates the certificates.

    With a `directory` everything is stored there: `ca.pem`, `ca-key.pem`, `tpps/<name>/`; without one, in memory.
    With `power`, issued certificates survive a power cut. Raises AuthorityDamaged, and OSError for a directory that
    cannot be used.
    """

    def __init__(self, directory: Path | None, *, clock: Callable[[], datetime], power: bool = False) -> None:
        self._directory = directory
        self._power = power
        self._clock = clock
        self._in_memory: dict[str, Credentials] = {}
        self._answer_credentials: Credentials | None = None
        self._issuer = self._new_in_memory() if directory is None else self._in_files(directory)

    @property
    def certificate(self) -> x509.Certificate:
        """The CA's certificate, `CN=Bank Emulator Sandbox CA,O=Bank Emulator,C=NO`."""
        return self._issuer.certificate

    @property
    def certificate_pem(self) -> str:
        return pem(self.certificate)

    def demo(self) -> Credentials:
        """The TPP `demo`, with the roles PISP and AISP; issued again when it has expired or the CA was replaced."""
        demo = self.find(DEMO)
        if demo is not None and self._is_valid(demo.certificate):
            return demo
        try:
            return self.issue(DEMO, replace=demo is not None)
        except TppExists:  # another process issued it meanwhile, or its folder has lost a file
            return _read_credentials(DEMO, Path(f"{self._directory}/tpps/{DEMO}"))

    def issue(
        self,
        name: str,
        *,
        subject: str | None = None,
        roles: Iterable[str] = ROLES,
        organization_identifier: str | None = None,
        flaw: str | None = None,
        keystore_password: str | None = None,
        replace: bool = False,
        within: ExitStack | None = None,
    ) -> Credentials:
        """Issue a certificate and key for a new TPP, stored under its name.

        If what it is issued `within` raises, it was not issued.

        `subject` is the name in the certificate (default: the TPP's name); `flaw` is a name of FLAWS; with
        `keystore_password` a `keystore.p12` is written too. Raises TppExists (unless `replace`) and IssueRefused.
        """
        name, subject = tpp_name(name), tpp_name(subject or name, "subject")
        if not replace and self.find(name) is not None:
            raise TppExists(name)
        content = certificates.flawed(self._content(subject, roles, organization_identifier), flaw)
        credentials = self._credentials(name, content)
        with ExitStack() as alone:
            (within or alone).enter_context(self._stored(credentials, keystore_password, replace=replace))
        return credentials

    def lasting(self, *, after_changes: bool = False) -> Generator[object, None, None]:
        """Have what was just issued last where several processes share the CA, in steps; if that fails, it was not.

        `after_changes`: those of the documents have to last before.
        """
        del after_changes
        yield from ()

    def find(self, name: str) -> Credentials | None:
        """The credentials of the TPP with this name, or None."""
        name = normalize("NFC", name)
        if self._directory is None:
            return self._in_memory.get(name)
        folder = self._directory / "tpps" / name
        if not TPP_NAME.fullmatch(name) or not (folder / _CERTIFICATE).exists():
            return None
        return _read_credentials(name, folder)

    def tpps(self) -> list[Credentials]:
        """The credentials of all TPPs, newest first."""
        if self._directory is None:
            return list(reversed(self._in_memory.values()))
        issued = (self._directory / "tpps").glob(f"*/{_CERTIFICATE}")
        names = [file.parent.name for file in sorted(issued, key=lambda file: file.stat().st_mtime_ns, reverse=True)]
        return [tpp for name in names if (tpp := self.find(name)) is not None]

    def answer_credentials(self) -> Credentials:
        """The credentials that sign the answers (signature.md#signed-answers), issued at the first call."""
        if self._answer_credentials is None:
            self._answer_credentials = self._stored_answer_credentials() or self._new_answer_credentials()
        return self._answer_credentials

    def secret(self, purpose: str) -> bytes:
        """32 bytes that only the holder of the CA's key can derive; with a directory, the same after a restart."""
        return hmac.digest(private_pem(self._issuer.key), purpose.encode(), "sha256")

    def server_context(self, hosts: Sequence[str]) -> ssl.SSLContext:
        """A TLS context, version 1.2 or higher, with a new certificate that names `hosts` (DNS names, IP addresses)."""
        key = certificates.new_ec_key()
        certificate = certificates.tls_certificate(key.public_key(), hosts, self._issuer, self._clock())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # ssl reads from files only; this one is private and removed before anyone connects.
        private = None if self._directory is None else ca_file(self._directory, "ca-key.pem").parent
        with tempfile.TemporaryDirectory(prefix="bank-emulator-", dir=private) as folder:
            chain = Path(folder) / "tls.pem"
            write_private(chain, (pem(certificate) + self.certificate_pem).encode() + private_pem(key))
            context.load_cert_chain(chain)
        return context

    def _content(self, name: str, roles: Iterable[str], organization_identifier: str | None) -> CertificateContent:
        chosen = frozenset(roles)
        if not chosen <= frozenset(ROLES):
            raise IssueRefused(f"The roles of a TPP are {' and '.join(ROLES)}.", "roles")
        if organization_identifier is not None and not _IDENTIFIER.fullmatch(organization_identifier):
            text = (
                "An organizationIdentifier has 1 to 256 characters, none of them a control character, and is not blank."
            )
            raise IssueRefused(text, "organizationIdentifier")
        now = self._clock()
        return CertificateContent(
            name=name,
            organization=name,
            organization_identifier=organization_identifier or f"PSDNO-SBX-{name}",
            roles=chosen,
            not_before=now - certificates.TOLERANCE,
            not_after=now + certificates.VALID_FOR,
            serial=x509.random_serial_number(),
        )

    def _credentials(self, name: str, content: CertificateContent) -> Credentials:
        issuer = self._issuer
        if content.issuer_name is not None:  # an unknown CA; its key is not stored
            ca_key = certificates.new_ec_key()
            issuer = Issuer(certificates.self_signed_ca(content.issuer_name, ca_key, self._clock()), ca_key)
        key = certificates.new_rsa_key()
        certificate = certificates.tpp_certificate(content, key.public_key(), issuer)
        return Credentials(name, certificate, private_pem(key), issuer.certificate, key)

    @contextmanager
    def _stored(self, credentials: Credentials, keystore_password: str | None, *, replace: bool) -> Iterator[None]:
        """A `with` block before which a TPP is stored, and which takes it back if it raises."""
        if self._directory is None:
            before = self._in_memory
            # at the end: it is the newest
            self._in_memory = {name: tpp for name, tpp in before.items() if name != credentials.name}
            self._in_memory[credentials.name] = credentials
            try:
                yield
            except BaseException:
                self._in_memory = before
                raise
            return
        files = {_CERTIFICATE: credentials.certificate_pem.encode(), _KEY: credentials.key_pem}
        if keystore_password is not None:
            files[_KEYSTORE] = credentials.keystore(keystore_password)
        folder = self._directory / "tpps" / credentials.name
        with folder_written(folder, files, replace=replace, power=self._power) as is_new:
            if not is_new:
                raise TppExists(credentials.name)
            yield

    def _is_valid(self, certificate: x509.Certificate) -> bool:
        """Whether a certificate has not expired and, if it names this CA as its issuer, was signed by it."""
        if self._clock() >= certificate.not_valid_after_utc:
            return False
        if certificate.issuer != self.certificate.subject:
            return True
        try:
            certificate.verify_directly_issued_by(self.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _stored_answer_credentials(self) -> Credentials | None:
        if self._directory is None or not (self._directory / "bank" / _CERTIFICATE).exists():
            return None
        stored = _read_pair("bank", self._directory / "bank")
        return stored if self._is_valid(stored.certificate) else None

    def check(self) -> None:
        """Read every certificate that is stored with its key; raises AuthorityDamaged."""
        self._stored_answer_credentials()
        if self._directory is not None:
            for folder in sorted({file.parent for file in (self._directory / "tpps").glob("*/*.pem")}):
                _read_pair(folder.name, folder)

    def _new_answer_credentials(self) -> Credentials:
        key = certificates.new_rsa_key()
        certificate = certificates.answer_certificate(key.public_key(), self._issuer, self._clock())
        credentials = Credentials("bank", certificate, private_pem(key), self.certificate, key)
        if self._directory is not None:
            files = {_CERTIFICATE: credentials.certificate_pem.encode(), _KEY: credentials.key_pem}
            write_folder(self._directory / "bank", files, replace=True, power=self._power)
        return credentials

    def _new_in_memory(self) -> Issuer:
        key = certificates.new_ec_key()
        return Issuer(certificates.self_signed_ca(certificates.CA_NAME, key, self._clock()), key)

    def _in_files(self, directory: Path) -> Issuer:
        """The CA of `directory`, created at the first start; processes that start at the same time use the same one."""
        for folder in (directory, ca_file(directory, "ca-key.pem").parent):
            make_private(folder, power=self._power)
        check_private(directory)
        key_file, certificate_file = ca_file(directory, "ca-key.pem"), ca_file(directory, "ca.pem")
        for folder in (directory, key_file.parent, directory / "tpps"):
            sweep(folder)
        is_new = not certificate_file.exists()  # checked before the key, which another process would write first
        try:
            if not key_file.exists():
                if not is_new:
                    raise AuthorityDamaged(f"{key_file}: the key is missing")
                claim_private(key_file, private_pem(certificates.new_ec_key()), power=self._power)
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        except _UNREADABLE as error:
            raise AuthorityDamaged(f"{key_file}: not a private key in PEM ({error})") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise AuthorityDamaged(f"{key_file}: not an EC key")
        if is_new:
            new = certificates.self_signed_ca(certificates.CA_NAME, key, self._clock())
            claim_private(certificate_file, pem(new).encode(), power=self._power)
        certificate = _read_certificate(certificate_file)
        if certificate.public_key() != key.public_key():
            raise AuthorityDamaged(f"{certificate_file}: not the certificate of {key_file.name}")
        return Issuer(certificate, key)


def _read_certificate(file: Path) -> x509.Certificate:
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
        certificate.public_key()
        for member in ("subject", "issuer", "extensions", "signature_hash_algorithm"):
            getattr(certificate, member)  # what is damaged in it is noticed only when it is asked for
    except FileNotFoundError:
        raise AuthorityDamaged(f"{file}: the certificate is missing") from None
    except _UNREADABLE as error:
        raise AuthorityDamaged(f"{file}: not a certificate in PEM ({error})") from None
    return certificate


def _read_credentials(name: str, folder: Path) -> Credentials:
    certificate = _read_certificate(folder / _CERTIFICATE)
    try:
        return Credentials(name, certificate, (folder / _KEY).read_bytes())
    except FileNotFoundError:
        raise AuthorityDamaged(f"{folder / _KEY}: the key is missing") from None


def _read_pair(name: str, folder: Path) -> Credentials:
    credentials = _read_credentials(name, folder)
    try:
        is_pair = credentials.key.public_key() == credentials.certificate.public_key()
    except _UNREADABLE as error:
        raise AuthorityDamaged(f"{folder / _KEY}: not a private key in PEM ({error})") from None
    if not is_pair:
        raise AuthorityDamaged(f"{folder / _KEY}: not the key of {_CERTIFICATE}")
    return credentials
