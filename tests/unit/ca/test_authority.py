"""The sandbox CA: what it issues, wrong on purpose or not, and how it keeps it."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import stat
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key, pkcs12
from cryptography.x509.oid import NameOID

from emulator.api.certificates import identity
from emulator.ca import (
    FLAWS,
    AuthorityDamaged,
    CertificateAuthority,
    Credentials,
    IssueRefused,
    TppExists,
    files,
)
from emulator.ca.files import write_folder
from emulator.httpsig.keyid import compare_key_id, key_id_for
from tests.cases import cases

NOW = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)
CA_NAME = "CN=Bank Emulator Sandbox CA,O=Bank Emulator,C=NO"


def authority(directory: Path | None = None) -> CertificateAuthority:
    return CertificateAuthority(directory, clock=lambda: NOW)


def issued_to(ca: CertificateAuthority, name: str) -> Credentials:
    tpp = ca.find(name)
    assert tpp is not None
    return tpp


@pytest.fixture(scope="module")
def shared() -> CertificateAuthority:
    return authority()


def test_the_first_start_makes_a_ca_and_a_demo_tpp(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    first = authority(state)
    demo = first.demo()
    assert first.certificate.subject.rfc4514_string() == CA_NAME
    files = sorted(str(path.relative_to(state)) for path in state.rglob("*"))
    assert files == [
        *("ca.pem", "private", "private/ca-key.pem"),
        *("tpps", "tpps/demo", "tpps/demo/certificate.pem", "tpps/demo/key.pem"),
    ]
    demo.certificate.verify_directly_issued_by(first.certificate)
    assert identity(demo.certificate).roles == frozenset({"PISP", "AISP"})
    assert isinstance(demo.key, rsa.RSAPrivateKey)
    assert demo.key.key_size == 2048


def test_a_certificate_may_call_a_tpp_by_another_name_than_it_is_kept_under(shared: CertificateAuthority) -> None:
    issued = shared.issue("kept as", subject="Called So")
    assert identity(issued.certificate).name == "Called So"
    assert issued_to(shared, "kept as") is issued


def test_files_are_for_this_user_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    ca = authority(state)
    ca.issue("demo", keystore_password="secret")
    ca.answer_credentials()
    for path in (state, *state.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_later_start_finds_what_was_made(tmp_path: Path) -> None:
    first = authority(tmp_path)
    demo, other = first.demo(), first.issue("other", roles=["PISP"])
    second = authority(tmp_path)
    assert second.certificate == first.certificate
    assert second.demo().certificate == demo.certificate
    assert second.demo().key.private_numbers() == demo.key.private_numbers()
    assert [tpp.name for tpp in second.tpps()] == ["other", "demo"]
    assert issued_to(second, "other").certificate == other.certificate
    assert second.answer_credentials().certificate == authority(tmp_path).answer_credentials().certificate


@pytest.mark.parametrize("stored", [True, False])
def test_tpps_are_listed_newest_first(tmp_path: Path, stored: bool) -> None:
    ca = authority(tmp_path if stored else None)
    for name in ("b", "c", "a"):
        ca.issue(name)
    assert [tpp.name for tpp in ca.tpps()] == ["a", "c", "b"]
    ca.issue("c", replace=True)
    assert [tpp.name for tpp in ca.tpps()] == ["c", "a", "b"]


def test_in_memory_nothing_is_written_and_everything_is_found(shared: CertificateAuthority) -> None:
    issued = shared.issue("memory")
    assert shared.find("memory") is issued
    assert issued in shared.tpps()
    assert shared.find("nobody") is None


def test_an_expired_demo_tpp_is_issued_anew(tmp_path: Path) -> None:
    old = authority(tmp_path).demo()
    later = CertificateAuthority(tmp_path, clock=lambda: NOW + timedelta(days=4 * 365))
    new = later.demo()
    assert new.certificate != old.certificate
    assert later.demo().certificate == new.certificate


def test_with_a_new_ca_the_demo_tpp_and_the_banks_own_certificate_are_issued_anew(tmp_path: Path) -> None:
    first = authority(tmp_path)
    old = (first.demo().certificate, first.answer_credentials().certificate)
    other = first.issue("other").certificate
    for file in ("ca.pem", "private/ca-key.pem"):
        (tmp_path / file).unlink()
    second = authority(tmp_path)
    new = (second.demo().certificate, second.answer_credentials().certificate)
    assert not set(old) & set(new)
    for certificate in new:
        certificate.verify_directly_issued_by(second.certificate)
    third = authority(tmp_path)
    assert (third.demo().certificate, third.answer_credentials().certificate) == new
    assert issued_to(third, "other").certificate == other


def test_a_demo_tpp_of_another_ca_stays(tmp_path: Path) -> None:
    strange = authority(tmp_path).issue("demo", flaw="unknown-ca").certificate
    assert authority(tmp_path).demo().certificate == strange


def test_a_name_is_taken_once_unless_it_is_replaced(tmp_path: Path) -> None:
    for place in (None, tmp_path):
        ca = authority(place)
        first = ca.issue("one")
        with pytest.raises(TppExists, match="one"):
            ca.issue("one")
        assert ca.issue("one", replace=True).certificate != first.certificate
        assert len(ca.tpps()) == 1


@cases("name", ["", "..", "../x", "a/b", ".hidden", "x.", "a" * 64, "×", "名", "ø\u202e", "a\nb", "-a"])
def test_names_that_are_no_folder_names_are_refused(shared: CertificateAuthority, name: str, tmp_path: Path) -> None:
    with pytest.raises(IssueRefused, match="A TPP name has"):
        shared.issue(name)
    assert authority(tmp_path).find(name) is None


@pytest.mark.parametrize("place", [None, "folder"])
def test_a_name_has_the_letters_of_its_language_however_they_are_composed(place: str | None, tmp_path: Path) -> None:
    ca = authority(None if place is None else tmp_path)
    name = "Ærlig Øl på Ås"
    issued = ca.issue(unicodedata.normalize("NFD", name), subject="Čáhppes Gávpi")
    assert issued.name == name
    assert issued.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "Čáhppes Gávpi"
    with pytest.raises(TppExists):
        ca.issue(name)
    for written in ("NFC", "NFD"):
        assert issued_to(ca, unicodedata.normalize(written, name)).certificate == issued.certificate
    assert [tpp.name for tpp in ca.tpps()] == [name]


def test_unknown_roles_flaws_and_empty_identifiers_are_refused(shared: CertificateAuthority) -> None:
    with pytest.raises(IssueRefused, match="PISP and AISP"):
        shared.issue("x", roles=["ASPSP"])
    with pytest.raises(IssueRefused, match="the flaws are expired, "):
        shared.issue("x", flaw="no-such-flaw")
    for identifier in ("", " ", "x" * 257, "\0", "a\nb", "a\x7f", "\x85", "\ud800"):
        with pytest.raises(IssueRefused, match="1 to 256"):
            shared.issue("x", organization_identifier=identifier)


def test_every_flaw_is_there() -> None:
    assert set(FLAWS) == {
        "expired", "not-yet-valid", "unknown-ca", "no-roles", "leading-zero-serial", "special-characters"
    }  # fmt: skip


@cases("flaw", [None, *FLAWS])
def test_a_flawed_certificate_is_wrong_in_that_alone(shared: CertificateAuthority, flaw: str | None) -> None:
    issued = shared.issue(f"with {flaw}", flaw=flaw, organization_identifier="PSDNO-SBX-7")
    certificate = issued.certificate
    assert (certificate.not_valid_after_utc < NOW) == (flaw == "expired")
    assert (certificate.not_valid_before_utc > NOW) == (flaw == "not-yet-valid")
    assert certificate.not_valid_before_utc < certificate.not_valid_after_utc
    known = certificate.issuer == shared.certificate.subject
    assert known == (flaw not in ("unknown-ca", "special-characters"))
    assert issued.issuer is not None
    certificate.verify_directly_issued_by(issued.issuer)
    assert identity(certificate).id == "PSDNO-SBX-7"
    assert identity(certificate).roles == (frozenset() if flaw == "no-roles" else frozenset({"PISP", "AISP"}))
    assert (f"{certificate.serial_number:032X}".startswith("0A") and certificate.serial_number < 1 << 128) == (
        flaw == "leading-zero-serial"
    )
    special = any(character in certificate.issuer.rfc4514_string() for character in '\\"æ')
    assert special == (flaw == "special-characters")
    assert compare_key_id(key_id_for(certificate), certificate).notes == ()


def test_special_characters_are_all_those_that_rfc_2253_escapes(shared: CertificateAuthority) -> None:
    issuer = shared.issue("all of them", flaw="special-characters").certificate.issuer
    values = "".join(str(attribute.value) for attribute in issuer)
    assert set(',+"\\<>;=#') <= set(values)
    assert not values.isascii()
    assert issuer.get_attributes_for_oid(x509.NameOID.ORGANIZATION_IDENTIFIER)


def test_the_keystore_holds_key_and_chain(tmp_path: Path) -> None:
    ca = authority(tmp_path)
    issued = ca.issue("store", keystore_password="secret")
    store = pkcs12.load_pkcs12((tmp_path / "tpps" / "store" / "keystore.p12").read_bytes(), b"secret")
    assert store.cert is not None
    assert store.cert.certificate == issued.certificate
    assert [extra.certificate for extra in store.additional_certs] == [ca.certificate]
    assert isinstance(store.key, rsa.RSAPrivateKey)
    assert store.key.private_numbers() == issued.key.private_numbers()


def test_keys_do_not_show_in_a_repr(shared: CertificateAuthority) -> None:
    assert "PRIVATE" not in repr(shared.issue("quiet"))


@pytest.mark.parametrize("file", ["ca.pem", "private/ca-key.pem", "tpps/demo/certificate.pem"])
def test_a_damaged_file_is_named(tmp_path: Path, file: str) -> None:
    authority(tmp_path).demo()
    (tmp_path / file).write_text("damaged")
    with pytest.raises(AuthorityDamaged, match=str(tmp_path / file)):
        authority(tmp_path).demo()


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_a_bit_that_flips_in_the_certificate_of_the_ca_is_no_other_error(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    content = authority(tmp_path).certificate.public_bytes(Encoding.DER)
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        file.write_bytes(ssl.DER_cert_to_PEM_cert(bytes(flipped)).encode())
        with suppress(AuthorityDamaged):  # in the signature or in a date it is not noticed
            certificate = authority(tmp_path).certificate
            assert certificate.subject
            assert certificate.extensions


def test_a_check_names_the_file_of_a_tpp_that_is_of_no_use(tmp_path: Path) -> None:
    ca = authority(tmp_path)
    other = ca.issue("other")
    ca.demo()
    ca.check()
    for tpp, name in product(("demo", "other"), ("certificate.pem", "key.pem")):
        file = tmp_path / "tpps" / tpp / name
        content = file.read_bytes()
        for damaged in (None, b"", content[:-40], other.key_pem if tpp == "demo" else ca.demo().key_pem):
            file.unlink()
            if damaged is not None:
                file.write_bytes(damaged)
            with pytest.raises(AuthorityDamaged, match=str(file)):
                ca.check()
            file.write_bytes(content)
    ca.check()


@pytest.mark.parametrize("what", ["certificate", "key"])
def test_a_missing_file_of_a_tpp_is_named(tmp_path: Path, what: str) -> None:
    authority(tmp_path).demo()
    file = tmp_path / "tpps" / "demo" / f"{what}.pem"
    file.unlink()
    with pytest.raises(AuthorityDamaged, match=f"{file}: the {what} is missing"):
        authority(tmp_path).demo()


def test_a_missing_key_of_the_ca_is_named_and_no_other_takes_its_place(tmp_path: Path) -> None:
    authority(tmp_path)
    (tmp_path / "private" / "ca-key.pem").unlink()
    with pytest.raises(AuthorityDamaged, match=r"ca-key\.pem: the key is missing"):
        authority(tmp_path)
    assert [path.name for path in tmp_path.rglob("*.pem")] == ["ca.pem"]


def test_a_certificate_of_another_key_is_named(tmp_path: Path) -> None:
    authority(tmp_path / "a")
    authority(tmp_path / "b")
    (tmp_path / "a" / "ca.pem").write_bytes((tmp_path / "b" / "ca.pem").read_bytes())
    with pytest.raises(AuthorityDamaged, match=r"not the certificate of ca-key\.pem"):
        authority(tmp_path / "a")


def test_a_start_that_was_killed_between_key_and_certificate_is_finished(tmp_path: Path) -> None:
    authority(tmp_path)
    (tmp_path / "ca.pem").unlink()
    again = authority(tmp_path)
    key = load_pem_private_key((tmp_path / "private" / "ca-key.pem").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert again.certificate.public_key() == key.public_key()


def test_two_starts_at_once_agree_on_one_ca(tmp_path: Path) -> None:
    authorities: list[CertificateAuthority] = []
    barrier = threading.Barrier(6)

    def start() -> None:
        barrier.wait()
        authorities.append(authority(tmp_path))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({entry.certificate_pem for entry in authorities}) == 1
    assert len(authorities) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.pem", "private"]


def test_of_two_that_write_a_folder_at_once_the_first_has_written_it(tmp_path: Path) -> None:
    assert write_folder(tmp_path / "f", {"x": b"1"})
    assert not write_folder(tmp_path / "f", {"x": b"2"})
    assert (tmp_path / "f" / "x").read_bytes() == b"1"


def test_what_a_killed_process_left_half_written_is_gone_with_the_next_start(tmp_path: Path) -> None:
    issued, _ = authority(tmp_path).issue("acme"), authority(tmp_path).issue("other")
    token = "0123456789ab"
    tpps = tmp_path / "tpps"
    for file in (
        tmp_path / "private" / f".ca-key.pem.{token}",
        tpps / f".half.{token}" / "certificate.pem",
        tpps / f".other.{token}.old" / "certificate.pem",
        tpps / ".mine",
    ):
        file.parent.mkdir(exist_ok=True)
        file.write_text("half")
    (tpps / "acme").rename(tpps / f".acme.{token}.old")  # killed as a new one was to take its place
    again = authority(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.pem", "private", "tpps"]
    assert sorted(path.name for path in tpps.iterdir()) == [".mine", "acme", "other"]
    assert issued_to(again, "acme").certificate == issued.certificate


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = authority(tmp_path)
    fsync = os.fsync

    def sweep_meanwhile(file: int) -> None:
        authority(tmp_path)
        fsync(file)

    monkeypatch.setattr(os, "fsync", sweep_meanwhile)
    assert first.issue("acme").name == "acme"


@pytest.mark.parametrize("power", [False, True])
def test_with_power_what_is_issued_is_on_the_medium(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, power: bool
) -> None:
    synced = []
    contents = 0  # synced before they got their names
    fsync = os.fsync

    def noted(file: int) -> None:
        nonlocal contents
        contents += stat.S_ISREG(os.fstat(file).st_mode)
        known = [path for path in (tmp_path, *tmp_path.rglob("*")) if path.is_dir()]
        for path in known:
            if os.path.samestat(os.fstat(file), path.stat()):
                synced.append((path.name, sorted(os.listdir(path))))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    state = tmp_path / "state"
    ca = CertificateAuthority(state, clock=lambda: NOW, power=power)
    ca.issue("acme")
    assert (contents, bool(synced)) == (4, power)
    if power:
        assert any(name == "private" and "ca-key.pem" in names for name, names in synced)
        assert (tmp_path.name, ["state"]) in synced
        assert ("tpps", ["acme"]) in synced
        assert synced.index(("tpps", ["acme"])) > [names for _, names in synced].index(["certificate.pem", "key.pem"])
        assert any(name == "state" and {"private", "ca.pem", "tpps"} <= set(names) for name, names in synced)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("place", [0, 1])
def test_a_folder_that_cannot_be_put_in_place_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool, place: int
) -> None:
    """As the folder itself is renamed, and as the names of what it stands in cannot be synced."""
    folder = tmp_path / "f"
    if replace:
        write_folder(folder, {"x": b"old"})
    rename, fsync = os.rename, os.fsync

    def no_rename(old: Path, new: Path) -> None:
        if new == folder and not str(old).endswith(".old"):
            raise OSError(28, "No space left on device")
        rename(old, new)

    def no_fsync(file: int) -> None:
        if os.path.samestat(os.fstat(file), tmp_path.stat()):
            raise OSError(5, "Input/output error")
        fsync(file)

    monkeypatch.setattr(os, *(("rename", no_rename), ("fsync", no_fsync))[place])
    with pytest.raises(OSError):
        write_folder(folder, {"x": b"new"}, replace=replace, power=True)
    assert {path.name for path in tmp_path.iterdir()} == ({"f"} if replace else set())
    assert not replace or (folder / "x").read_bytes() == b"old"


def test_the_bank_signs_its_answers_with_a_certificate_of_the_ca(shared: CertificateAuthority) -> None:
    answering = shared.answer_credentials()
    answering.certificate.verify_directly_issued_by(shared.certificate)
    assert answering.certificate.subject.rfc4514_string() == "CN=Bank Emulator,O=Bank Emulator,C=NO"
    assert shared.answer_credentials() is answering


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_is_1_2_or_higher_with_every_host_named() -> None:
    shared = CertificateAuthority(None, clock=lambda: datetime.now(UTC))  # a TLS client looks at the real time
    server = shared.server_context(["localhost", "127.0.0.1", "::1", "bank.test", "localhost"])
    client = ssl.create_default_context(cadata=shared.certificate_pem)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    shown = handshake(server, client, "bank.test")
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "bank.test"]
    addresses = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    assert names.get_values_for_type(x509.IPAddress) == addresses
    handshake(server, client, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, client, "other.test")
    old = ssl.create_default_context(cadata=shared.certificate_pem)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        handshake(server, old, "bank.test")


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> x509.Certificate:
    """The server's certificate after a handshake over a pair of sockets."""
    near, far = socket.socketpair()
    failures: list[Exception] = []

    def answer() -> None:
        try:
            with server.wrap_socket(far, server_side=True):
                pass
        except (ssl.SSLError, OSError) as error:
            failures.append(error)
        finally:
            far.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with client.wrap_socket(near, server_hostname=host) as connection:
            return x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")
    finally:
        near.close()
        thread.join()


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    files._warn.cache_clear()
    yield lambda: [record.getMessage() for record in caplog.records]
    files._warn.cache_clear()


def closed(state: Path) -> bool:
    """Whether every folder with a key or data is for its user alone."""
    return all(stat.S_IMODE((state / name).stat().st_mode) & 0o077 == 0 for name in ("private", "tpps"))


@pytest.mark.parametrize(
    ("mode", "warned"),
    [(0o755, False), (0o701, False), (0o2770, False), (0o2775, False), (0o1777, False), (0o777, True)],
)
def test_an_open_state_directory_is_taken_and_the_keys_are_in_closed_folders(
    tmp_path: Path, mode: int, warned: bool, warnings: Callable[[], list[str]]
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(mode)
    authority(state).demo()
    assert stat.S_IMODE(state.stat().st_mode) == mode
    assert closed(state)
    for name in ("private", "tpps"):  # as a cluster does that gives a volume to a group
        (state / name).chmod(0o2770)
    authority(state).demo()
    assert closed(state)
    (state / "private").chmod(0o2700)  # closed already: its mode is left alone
    authority(state).demo()
    assert stat.S_IMODE((state / "private").stat().st_mode) == 0o2700
    assert [f"mode {mode:o}" in text for text in warnings()] == [True] * warned


def test_where_modes_cannot_be_set_one_warning_says_so_and_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    """As on the drives of Windows in WSL, and on FAT, which has no links either."""
    mkdir, chmod = os.mkdir, os.chmod

    def open_mkdir(path: Any, mode: int = 0o777, **options: Any) -> None:
        mkdir(path, mode, **options)
        chmod(path, 0o777)

    def no_link(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "mkdir", open_mkdir)
    monkeypatch.setattr(os, "chmod", lambda *_, **__: None)
    monkeypatch.setattr(os, "link", no_link)
    state = tmp_path / "state"
    first = authority(state)
    assert first.demo().certificate == authority(state).demo().certificate
    assert first.certificate == authority(state).certificate
    assert files.claim_private(state / "ca.pem", b"later") == first.certificate_pem.encode(), "the first has claimed it"
    assert stat.S_IMODE((state / "private").stat().st_mode) == 0o777
    [text] = warnings()
    assert "no modes can be set here" in text
    first.server_context(["localhost"])


def test_what_a_volume_has_beside_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody may read, a socket of a server, what lies deeper than the bank's own files."""
    (tmp_path / "lost+found").mkdir()
    with closing(socket.socket(socket.AF_UNIX)) as server:
        monkeypatch.chdir(tmp_path)  # a socket's path must be short
        server.bind("socket")
    (tmp_path / "others" / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "others" / "a" / "b" / "c" / "link").symlink_to("elsewhere")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "lost+found" not in str(path) and access(path, mode))
    monkeypatch.setattr(files, "check_plain", partial(only_readable, files.check_plain))
    authority(tmp_path).demo()


def only_readable(check: Callable[..., None], directory: Path, **options: Any) -> None:
    if directory.name == "lost+found":
        raise PermissionError(errno.EACCES, "Permission denied", str(directory))
    check(directory, **options)


@pytest.mark.parametrize(
    "place",
    ["private/ca-key.pem", "tpps", "tpps/demo", "tpps/demo/key.pem", "banks/default/journal", "banks/x/snapshots/one"],
)
def test_a_link_in_a_state_directory_is_refused(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    authority(state).demo()
    link = state / place
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.exists():
        link.rename(elsewhere)
    link.symlink_to(elsewhere)
    if link.parent == state / "private":  # the bank's own is looked into in any case
        monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="symbolic link") as refused:
        authority(state)
    assert refused.value.filename == str(link)


def test_the_state_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "state").symlink_to(tmp_path / "data")
    assert authority(tmp_path / "state").certificate == authority(tmp_path / "data").certificate
