"""What a certificate's bearer is called: Java's X500Principal and Kafka's SslPrincipalMapper, and ours."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from kgroup.broker.authentication.connection import distinguished_name
from kgroup.security.principal_mapping import PrincipalMapping
from tests.interop import jvm
from tests.interop.conftest import require

pytestmark = pytest.mark.interop
KEY = ec.generate_private_key(ec.SECP256R1())
CN, ORG = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME
UNIT, COUNTRY = NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.COUNTRY_NAME
Part = tuple[ObjectIdentifier, str] | tuple[ObjectIdentifier, str, _ASN1Type]
TEXTS = (
    "alice",
    "Alice Smith",
    " leading",
    "trailing ",
    "  both  ",
    " ",
    "a,b+c=d",
    'say "hi"',
    "back\\slash",
    "<less> and #more; done",
    "#hash first",
    "ünïcödé",
    "日本語",
    "tab\there",
    "new\nline",
    "nul\0inside",
    "emoji 🦆",
    "a  b   c",
    "/slash*star",
    "x" * 64,
)
OTHER = tuple(
    (oid, "some value")
    for oid in (
        NameOID.EMAIL_ADDRESS,
        NameOID.SERIAL_NUMBER,
        NameOID.GIVEN_NAME,
        NameOID.SURNAME,
        NameOID.TITLE,
        NameOID.USER_ID,
        NameOID.DOMAIN_COMPONENT,
        NameOID.STREET_ADDRESS,
        NameOID.STATE_OR_PROVINCE_NAME,
        NameOID.LOCALITY_NAME,
        NameOID.DN_QUALIFIER,
        NameOID.POSTAL_CODE,
        ObjectIdentifier("1.2.3.4.5.6"),
    )
)
NAMES: tuple[Sequence[Sequence[Part]], ...] = (
    *([[(ORG, "Kafka")], [(CN, text)]] for text in TEXTS),
    *([[each], [(CN, "alice")]] for each in OTHER),
    [[(COUNTRY, "DE")], [(ORG, "Kafka, Inc.")], [(UNIT, "a"), (CN, "b")], [(CN, "c")]],
    [[(CN, "b"), (UNIT, "a"), (ORG, "z")]],
    [[(CN, "printable", _ASN1Type.PrintableString)]],
    [[(CN, "wide ü", _ASN1Type.BMPString)]],
    [[(CN, "old", _ASN1Type.T61String)]],
    [[(ObjectIdentifier("1.2.3.4"), "y" * 200)]],
    [],
)


def certificate(path: Path, name: Sequence[Sequence[Part]]) -> bytes:
    """One for this name, written to a file; its DER."""
    rdns = []
    for parts in name:
        attributes = []
        for oid, text, *kind in parts:
            made = x509.NameAttribute(oid, text, *kind) if kind else x509.NameAttribute(oid, text)
            attributes.append(made)
        rdns.append(x509.RelativeDistinguishedName(attributes))
    subject = x509.Name(rdns)
    today = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(x509.Name([x509.NameAttribute(CN, "ca")]))
    )
    builder = builder.public_key(KEY.public_key()).serial_number(1)
    builder = builder.not_valid_before(today).not_valid_after(today + datetime.timedelta(days=3650))
    made = builder.sign(KEY, hashes.SHA256())
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return made.public_bytes(serialization.Encoding.DER)


def escaped(name: str) -> str:
    """As Names.java prints it: its characters are Java's, two for those beyond the first plane."""
    units = memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(chr(unit) if 32 <= unit < 127 else f"{{{unit:04x}}}" for unit in units)


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULT",
        "RULE:^CN=([a-zA-Z ]*),.*$/$1/U,RULE:^.*O=(.*?)(,.*)?$/$1 of $3/L",
        "RULE:.*/x/",
        "RULE:^CN=(.*),O=(.*)$/$2\\/$1 $9 $12/",
    ],
)
def test_names_are_those_of_java(rules: str, tmp_path: Path) -> None:
    require("java", "mvn")
    numbers = itertools.count()
    made = {path: certificate(path, name) for name in NAMES if (path := tmp_path / f"{next(numbers)}.pem")}
    told = jvm.tool("kgroup.interop.Names", rules, *map(str, made)).stdout.splitlines()
    mapping = PrincipalMapping(rules)
    ours = [mapping.name_of(distinguished_name(der)) for der in made.values()]
    assert [escaped("(nobody)" if name is None else name) for name in ours] == told
