"""The keyId: serial and issuer in every spelling that a bank should understand (signature.md#keyid)."""

from __future__ import annotations

import contextlib
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from emulator.httpsig.keyid import NameUnreadable, certificate_name, compare_key_id, key_id_for, read_name
from tests.cases import cases
from tests.unit.signature.making import NOW, Making

KEY = ec.generate_private_key(ec.SECP256R1())
TOOL_ORDER = "keyId: the issuer is in the order CN, O, OU, L, ST, C, not in that of RFC 2253"
REVERSED = "keyId: the issuer is in the certificate's order, RFC 2253 reverses it"
KINDS = {
    "CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "L": NameOID.LOCALITY_NAME, "ST": NameOID.STATE_OR_PROVINCE_NAME, "C": NameOID.COUNTRY_NAME,
    "ID": NameOID.ORGANIZATION_IDENTIFIER, "E": NameOID.EMAIL_ADDRESS, "DC": NameOID.DOMAIN_COMPONENT,
}  # fmt: skip


def certificate(issuer: x509.Name, serial: int = 0xABCDEF) -> x509.Certificate:
    builder = x509.CertificateBuilder(issuer, issuer, KEY.public_key(), serial)
    return builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1)).sign(KEY, hashes.SHA256())


def name(*parts: str) -> x509.Name:
    """A name from parts like `C=NO` in encoded order; `+` joins a relative name of several attributes."""
    rdns = []
    for part in parts:
        pairs = [piece.split("=", 1) for piece in part.split("+")]
        rdns.append(x509.RelativeDistinguishedName([x509.NameAttribute(KINDS[kind], text) for kind, text in pairs]))
    return x509.Name(rdns)


PLAIN = certificate(name("C=NO", "O=Issuer AS", "CN=Some CA"))
FULL = certificate(name("C=NO", "L=Oslo", "O=Issuer AS", "ID=NTRNO-1", "OU=one", "OU=two", "ST=Viken", "CN=CA"))


@cases(
    "cert, issuer, notes",
    [
        (PLAIN, "CN=Some CA,O=Issuer AS,C=NO", ()),
        (PLAIN, "cn=Some CA,o=Issuer AS,c=NO", ()),
        (PLAIN, "2.5.4.3=Some CA,2.5.4.10=Issuer AS,2.5.4.6=NO", ()),
        (PLAIN, r"CN=Some\20CA,O=\49ssuer AS,C=NO", ()),
        (PLAIN, r"CN=Some\ CA,O=Issuer AS,C=NO", ()),
        (PLAIN, "CN=#0c07536f6d65204341,O=Issuer AS,C=#13024E4F", ()),
        (PLAIN, "C=NO,O=Issuer AS,CN=Some CA", (REVERSED,)),
        (PLAIN, "CN=Some CA, O=Issuer AS, C=NO", ("keyId: blanks around , or = in the issuer",)),
        (PLAIN, "CN = Some CA , O = Issuer AS,C=NO", ("keyId: blanks around , or = in the issuer",)),
        (PLAIN, "OID.2.5.4.3=Some CA,O=Issuer AS,C=NO",
         ("keyId: OID. before a dotted attribute type in the issuer",)),
        (FULL, "CN=CA,ST=Viken,OU=two,OU=one,2.5.4.97=NTRNO-1,O=Issuer AS,L=Oslo,C=NO", ()),
        (FULL, "CN=CA,ST=Viken,OU=two,OU=one,2.5.4.97=#0C074E54524E4F2D31,O=Issuer AS,L=Oslo,C=NO", ()),
        (FULL, "CN=CA,S=Viken,OU=two,OU=one,organizationIdentifier=NTRNO-1,O=Issuer AS,L=Oslo,C=NO",
         ("keyId: the attribute type S in the issuer",
          "keyId: the attribute type organizationIdentifier in the issuer")),
        (FULL, "C=NO,L=Oslo,O=Issuer AS,2.5.4.97=NTRNO-1,OU=one,OU=two,ST=Viken,CN=CA", (REVERSED,)),
        (FULL, "CN=CA,O=Issuer AS,OU=one,two,L=Oslo,S=Viken,C=NO", (TOOL_ORDER,)),
        (FULL, "CN=CA,O=Issuer AS,OU=one,OU=two,L=Oslo,ST=Viken,C=NO", (TOOL_ORDER,)),
        (FULL, "CN=CA,O=Issuer AS,OU=two,one,L=Oslo,S=Viken,C=NO", (TOOL_ORDER,)),
        (certificate(name("C=NO", "O=A+OU=B", "E=x@y.example")), "1.2.840.113549.1.9.1=x@y.example,OU=B+O=A,C=NO", ()),
        (certificate(name("C=NO", "O=A+OU=B", "E=x@y.example")), "E=x@y.example,O=A+OU=B,C=NO",
         ("keyId: the attribute type E in the issuer",)),
        (certificate(name("DC=example", "DC=ca", "CN=X")), "CN=X,DC=ca,DC=example", ()),
        (certificate(name("CN= a ")), r"CN=\ a\ ", ()),
        (certificate(name("CN=a\\")), r"CN=a\\", ()),
        (certificate(name('CN="q"')), r"CN=\"q\"", ()),
        (certificate(name("CN=#1")), r"CN=\#1", ()),
        (certificate(name("CN=Bjørn")), "CN=Bjørn", ()),
        (certificate(name("CN=Bjørn")), r"CN=Bj\C3\B8rn", ()),
        (certificate(name("CN=a=b")), "CN=a=b", ()),
        (certificate(name("CN=a;b<c>")), r"CN=a\;b\<c\>", ()),
        (certificate(name("CN=a;b<c>")), r"CN=a\;b<c>", ("keyId: ; < or > without a backslash in the issuer",)),
    ],
)  # fmt: skip
def test_an_issuer_in_an_accepted_form(cert: x509.Certificate, issuer: str, notes: tuple[str, ...]) -> None:
    verdict = compare_key_id(f"SN=ABCDEF,CA={issuer}", cert)
    assert verdict.fault is None
    assert verdict.notes == notes


@cases(
    "cert, issuer, fault",
    [
        (PLAIN, "CN=Other CA,O=Issuer AS,C=NO", "the issuer is not the certificate's"),
        (PLAIN, "O=Issuer AS,CN=Some CA,C=NO", "the parts of the issuer are in another order"),
        (PLAIN, "CN=Some CA,C=NO", "parts of the issuer are missing"),
        (PLAIN, "CN=some ca,O=Issuer AS,C=NO", "the issuer differs in upper and lower case"),
        (PLAIN, "CN=Some%20CA,O=Issuer%20AS,C=NO", "blanks of the issuer are written as %20"),
        (PLAIN, "CN%3DSome%20CA%2CO%3DIssuer%20AS%2CC%3DNO", "the issuer is percent-encoded"),
        (PLAIN, "", "parts of the issuer are missing"),
        (PLAIN, "CN=Some CA,O=Issuer AS,C=NO,", "the issuer cannot be read as an RFC 2253 name: '' has no '=' "
         "(a comma or plus inside a value is written \\, or \\+)"),
        (PLAIN, "/C=NO/O=Issuer AS/CN=Some CA", "the issuer cannot be read as an RFC 2253 name: it is in OpenSSL's old "
         "form with slashes (openssl writes it with -nameopt RFC2253)"),
        (PLAIN, "CN=Some+CA,O=Issuer AS,C=NO", "the issuer cannot be read as an RFC 2253 name: 'CA' has no '=' "
         "(a comma or plus inside a value is written \\, or \\+)"),
        (PLAIN, "XY=Some CA,C=NO",
         "the issuer cannot be read as an RFC 2253 name: the attribute type 'XY' is not known"),
        (PLAIN, r"CN=Some\xCA,C=NO", "the issuer cannot be read as an RFC 2253 name: a backslash must escape a "
         r"special character, found '\\xC'"),
        (PLAIN, "CN=#zz,C=NO", "the issuer cannot be read as an RFC 2253 name: a value that begins with # must be "
         "hexadecimal"),
        (certificate(name("CN=a,b")), "CN=a,b", "the issuer cannot be read as an RFC 2253 name: 'b' has no '=' "
         "(a comma or plus inside a value is written \\, or \\+)"),
        (certificate(name("CN=a,b")), r"CN=a\\,b", "the backslashes of the issuer are doubled"),
        (FULL, "CN=CA,O=Issuer AS,L=Oslo,S=Viken,C=NO", "parts of the issuer are missing"),
        (
            PLAIN,
            "CN=Some CA+O=Issuer AS,C=NO",
            "the parts of the issuer are joined by + where the certificate has a comma, or the other way round",
        ),
    ],
)  # fmt: skip
def test_an_issuer_that_is_refused_says_why(cert: x509.Certificate, issuer: str, fault: str) -> None:
    assert compare_key_id(f"SN=ABCDEF,CA={issuer}", cert).fault == fault


@cases("text", ["CN=tpp,O=A TPP,C=NO", "C=NO,O=A TPP,CN=tpp"])
def test_the_subject_in_the_place_of_the_issuer_is_told(text: str) -> None:
    builder = x509.CertificateBuilder(
        name("C=NO", "CN=Some CA"), name("C=NO", "O=A TPP", "CN=tpp"), KEY.public_key(), 1
    )
    issued = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1)).sign(KEY, hashes.SHA256())
    assert compare_key_id(f"SN=1,CA={text}", issued).fault == "CA= names its subject, not its issuer"
    assert compare_key_id("SN=1,CA=CN=Some CA,C=NO", issued).fault is None


@cases(
    "ca, serial, fault",
    [
        (True, "2", "the certificate that is sent is the CA's own, not the TPP's"),
        (False, "2", "the serial number is not the certificate's"),
        (False, "ab", "the serial number is in lower case, it must be upper-case hexadecimal"),
        (False, "171", "the serial number is decimal, it must be hexadecimal"),
    ],
)
def test_the_certificate_of_a_ca_is_told_from_a_keyid_with_two_mistakes(ca: bool, serial: str, fault: str) -> None:
    builder = x509.CertificateBuilder(name("CN=Root"), name("CN=Issuing"), KEY.public_key(), 0xAB)
    builder = builder.add_extension(x509.BasicConstraints(ca, None), critical=True)
    sent = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1)).sign(KEY, hashes.SHA256())
    assert compare_key_id(f"SN={serial},CA=CN=Issuing", sent).fault == fault


def test_the_lenient_profile_takes_percent_20_for_a_blank() -> None:
    verdict = compare_key_id("SN=ABCDEF,CA=CN=Some%20CA,O=Issuer%20AS,C=NO", PLAIN, lenient=True)
    assert verdict.fault is None
    assert verdict.notes == ("keyId: blanks of the issuer are written as %20",)


def test_nothing_of_a_refused_key_id_is_noted_as_accepted() -> None:
    verdict = compare_key_id("SN=abcdef, CA=CN=Other CA", PLAIN, lenient=True)
    assert (verdict.fault, verdict.notes) == ("the issuer is not the certificate's", ())


def test_a_percent_20_in_another_order_is_noted_for_both() -> None:
    verdict = compare_key_id("SN=ABCDEF,CA=C=NO,O=Issuer%20AS,CN=Some%20CA", PLAIN, lenient=True)
    assert verdict.notes == ("keyId: blanks of the issuer are written as %20", REVERSED)


def test_a_value_that_is_no_character_string_stays_as_it_is() -> None:
    assert read_name("2.5.4.45=#030207FF").rdns == ((("2.5.4.45", "#07ff"),),)


def test_a_percent_20_that_is_part_of_the_name_is_itself() -> None:
    odd = certificate(name("CN=a%20b"))
    assert compare_key_id("SN=ABCDEF,CA=CN=a%20b", odd).fault is None
    assert compare_key_id("SN=ABCDEF,CA=CN=a b", odd, lenient=True).fault == "the issuer is not the certificate's"


@cases(
    "text, reason",
    [
        ('CN="a"', 'a double quote inside a value must be written \\"'),
        (r"CN=\ff", "its \\hex pairs are not UTF-8"),
        ("CN=#0c", "a value that begins with # must be the hexadecimal DER encoding"),
        ("CN=#0c05 61", "a value that begins with # must be the hexadecimal DER encoding"),
        ("CN=#0c0561", "a value that begins with # must be the hexadecimal DER encoding"),
        ("CN=#0c8101", "a value that begins with # must be the hexadecimal DER encoding"),
        ("CN=#0c01ff", "a value that begins with # is not the character string it says"),
    ],
)
def test_a_value_that_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(NameUnreadable) as refused:
        read_name(text)
    assert str(refused.value) == reason


@cases("encoded", ["0c81806161", "130161", "140161", "160161", "1e020061", "1c0400000061"])
def test_every_kind_of_character_string_is_read_from_der(encoded: str) -> None:
    if encoded.startswith("0c81"):
        encoded = "0c8180" + "61" * 128
    assert set(read_name(f"CN=#{encoded}").rdns[0][0][1]) == {"a"}


def test_doubled_backslashes_are_recognised_in_a_readable_name_too() -> None:
    odd = certificate(name("CN=a+O=b\\c"))
    assert compare_key_id(r"SN=ABCDEF,CA=CN=a+O=b\\c", odd).fault is None
    assert compare_key_id(r"SN=ABCDEF,CA=CN=a+O=b\\\\c", odd).fault == "the backslashes of the issuer are doubled"


def test_percent_20_does_not_excuse_another_issuer() -> None:
    fault = compare_key_id("SN=ABCDEF,CA=CN=Other%20CA", PLAIN, lenient=True).fault
    assert fault == "the issuer is not the certificate's"


def test_a_very_long_expected_key_id_leaves_no_room_for_the_reason(making: Making) -> None:
    from emulator.ca import Credentials

    long = certificate(name("C=NO", "O=" + "x" * 600, "CN=Long"))
    (only,) = (
        Making(Credentials("long", long, b""), sign=lambda key, data: b"x", key_id="SN=1,CA=CN=x")
        .with_key(making.credentials.key)
        .faults()[-1:]
    )
    assert only.text.startswith("The KeyID is not matching SN=ABCDEF,CA=CN=Long,O=xxx")
    assert len(only.text) == 512


@cases("serial", ["ABCDEF", "0ABCDEF", "00000000ABCDEF"])
def test_leading_zeros_of_the_serial_do_not_matter(serial: str) -> None:
    assert compare_key_id(f"SN={serial},CA=CN=Some CA,O=Issuer AS,C=NO", PLAIN).notes == ()


@cases(
    "serial, fault",
    [
        ("abcdef", "the serial number is in lower case, it must be upper-case hexadecimal"),
        ("ABCDEf", "the serial number is in lower case, it must be upper-case hexadecimal"),
        ("ABCDEE", "the serial number is not the certificate's"),
        ("11259375", "the serial number is decimal, it must be hexadecimal"),
        ("0xABCDEF", "the serial number is to be written without 0x, colons and blanks"),
        ("AB:CD:EF", "the serial number is to be written without 0x, colons and blanks"),
        ("", "the serial number is not hexadecimal"),
        ("ＡＢ", "the serial number is not hexadecimal"),
        ("-ABCDEF", "the serial number is not the certificate's"),
    ],
)
def test_a_serial_that_is_refused_says_why(serial: str, fault: str) -> None:
    assert compare_key_id(f"SN={serial},CA=CN=Some CA,O=Issuer AS,C=NO", PLAIN).fault == fault


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_a_serial_below_zero_is_written_as_the_bank_and_openssl_write_it() -> None:
    der = PLAIN.public_bytes(serialization.Encoding.DER)
    cert = x509.load_der_x509_certificate(der.replace(bytes.fromhex("020400abcdef"), bytes.fromhex("0204ff543211")))
    assert key_id_for(cert).startswith("SN=-ABCDEF,")
    assert compare_key_id(key_id_for(cert), cert).fault is None
    assert compare_key_id(key_id_for(PLAIN), cert).fault == "the serial number is not the certificate's"


def test_a_serial_in_lower_case_is_for_the_lenient_profile() -> None:
    verdict = compare_key_id("SN=abcdef,CA=CN=Some CA,O=Issuer AS,C=NO", PLAIN, lenient=True)
    assert (verdict.fault, verdict.notes) == (None, ("keyId: the serial number is in lower case",))


@cases("key_id", ["", "x", "SN=ABCDEF", "CA=CN=x,SN=1", "SN=ABCDEF;CA=CN=x", "SN=ABCDEF,CN=x"])
def test_a_key_id_of_another_form_is_refused(key_id: str) -> None:
    assert compare_key_id(key_id, PLAIN).fault == "it is not of the form SN=<serial>,CA=<issuer>"


def test_a_blank_after_the_comma_is_for_the_lenient_profile() -> None:
    key_id = "SN=ABCDEF, CA=CN=Some CA,O=Issuer AS,C=NO"
    assert compare_key_id(key_id, PLAIN).fault == "there is a blank between SN=<serial>, and CA=<issuer>"
    assert compare_key_id(key_id, PLAIN, lenient=True).notes == ("keyId: a blank before CA=",)


def test_a_mismatch_ends_with_the_expected_key_id(making: Making) -> None:
    refused = making.but(key_id="SN=-,CA=CN=x").refused()
    expected = key_id_for(making.credentials.certificate)
    assert str(refused).startswith("The KeyID is not matching ")
    assert str(refused).endswith(expected)
    shown = refused.diagnosis()["keyId"]
    assert (shown["sent"], shown["expected"]) == ("SN=-,CA=CN=x", expected)
    assert shown["firstDifference"]["column"] == 4


VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
PARTS = st.tuples(st.sampled_from(["O", "OU", "L", "ST", "ID", "DC"]), VALUES)
NAMES = st.lists(st.lists(PARTS, min_size=1, max_size=2, unique_by=lambda part: part[0]), min_size=1, max_size=4).map(
    lambda rdns: x509.Name(
        [x509.RelativeDistinguishedName([x509.NameAttribute(KINDS[kind], text) for kind, text in rdn]) for rdn in rdns]
    )
)


@given(NAMES)
def test_any_name_reads_back_from_what_the_library_writes(issuer: x509.Name) -> None:
    read = read_name(issuer.rfc4514_string())
    assert [sorted(rdn) for rdn in read.rdns] == [sorted(rdn) for rdn in certificate_name(issuer)[::-1]]


@given(NAMES)
def test_any_name_reads_back_from_any_escaping(issuer: x509.Name) -> None:
    def escaped(text: str) -> str:
        return "".join(f"\\{byte:02x}" for byte in text.encode())

    rdns = [
        "+".join(f"{part.oid.dotted_string}={escaped(str(part.value))}" for part in rdn)
        for rdn in reversed(issuer.rdns)
    ]
    text = ",".join(rdns)
    assert [sorted(rdn) for rdn in read_name(text).rdns] == [sorted(rdn) for rdn in certificate_name(issuer)[::-1]]


@given(st.text(max_size=60) | st.text(alphabet='CNO=,+\\#"; 0aF.%2', max_size=60), st.booleans())
def test_no_text_breaks_the_comparison(text: str, lenient: bool) -> None:
    for key_id in (text, f"SN=ABCDEF,CA={text}", f"SN={text},CA=CN=x"):
        assert compare_key_id(key_id, PLAIN, lenient=lenient).fault
    with contextlib.suppress(NameUnreadable):
        assert read_name(text, lists=True).rdns is not None


@cases("value", ["a" * 100_000, "\\," * 50_000])
def test_a_very_long_value_is_read_without_delay(value: str) -> None:
    """Quadratic work would take minutes."""
    (((_, read),),) = read_name(f"CN={value}").rdns
    assert read == value.replace("\\", "")
