"""Who a client's certificate says it is, as Kafka reads it: X500Principal.getName(), which is RFC 2253."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from kgroup.security.principals import ANONYMOUS, USER, Principal

if TYPE_CHECKING:
    from kgroup.security.principal_mapping import PrincipalMapping

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""What RFC 2253 has a keyword for; all else is an OID and its value in hexadecimal."""
_STRINGS = frozenset({12, 19, 20, 22, 27, 30})
"""The tags of UTF8, Printable, T61, IA5, General and BMP strings."""
_ESCAPED = frozenset(',=+<>#;"\\')


def principal_of(tls: ssl.SSLObject | ssl.SSLSocket, mapping: PrincipalMapping) -> Principal | None:
    """The principal behind a handshake: ANONYMOUS without a certificate, None if no rule names it."""
    certificate = tls.getpeercert(binary_form=True)
    if certificate is None:
        return ANONYMOUS
    name = mapping.name_of(distinguished_name(certificate))
    return None if name is None else Principal(USER, name)


def distinguished_name(certificate: bytes) -> str:
    """The subject of a certificate in DER, most specific part first; ValueError for what is none."""
    from cryptography.x509 import load_der_x509_certificate

    subject = load_der_x509_certificate(certificate).subject
    parts = []
    # how a value is encoded decides how Java writes it, which cryptography does not tell
    [(_, names, _)] = _elements(subject.public_bytes())
    for rdn, (_, encoded, _) in zip(subject.rdns, _elements(names), strict=True):
        values = [_elements(each)[1] for _, each, _ in _elements(encoded)]
        oids = (attribute.oid.dotted_string for attribute in rdn)
        parts.append("+".join(_written(oid, *value) for oid, value in zip(oids, values, strict=True)))
    return ",".join(reversed(parts))


def _elements(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Tag, content and whole of each element of a DER text that was found to be one."""
    found, pos = [], 0
    while pos < len(data):
        start, size = pos + 2, data[pos + 1]
        if size & 0x80:
            start, size = start + (size & 0x7F), int.from_bytes(data[start : start + (size & 0x7F)], "big")
        found.append((data[pos], data[start : start + size], data[pos : start + size]))
        pos = start + size
    return found


def _written(oid: str, tag: int, content: bytes, whole: bytes) -> str:
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _STRINGS:
        return f"{keyword or oid}=#{whole.hex()}"
    # Java reads the bytes of any kind of string as UTF-8
    text = content.decode("utf-8", "replace")
    shown = "".join(f"\\{c}" if c in _ESCAPED else "\\00" if c == "\0" else c for c in text)
    inner = shown.strip(" ")
    if not inner:
        return f"{keyword}=" + "\\ " * len(shown)
    before = len(shown) - len(shown.lstrip(" "))
    behind = len(shown) - len(shown.rstrip(" "))
    return f"{keyword}=" + "\\ " * before + inner + "\\ " * behind
