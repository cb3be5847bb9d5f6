"""Java's own key store format, JKS, read without Java.

The layout and the protection of keys are those of the JDK's `sun.security.provider.JavaKeyStore` and
`KeyProtector`; see docs/decisions/0035-java-stores.md for why this is not a library.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

MAGIC = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC = b"\xce\xce\xce\xce"
_KEY, _TRUSTED = 1, 2
_DIGEST = 20
_WHITENER = b"Mighty Aphrodite"
_SUN_PROTECTION = bytes.fromhex("060a2b060104012a02110101")


class WrongPassword(ValueError):
    """The password does not open the store, or not this key."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key as the store protects it, and its certificates (DER), the key's own first."""

    alias: str
    protected: bytes
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class JavaStore:
    """The content of a JKS file: keys, and trusted certificates (DER), each in the file's order."""

    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]


def parse(data: bytes, password: str | None) -> JavaStore:
    """Return the store's entries; without a password its integrity is not checked, as in Java.

    WrongPassword when the digest does not match, ValueError for an invalid JKS.
    """
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if body[:4] != MAGIC or len(data) < 12 + _DIGEST:
        raise ValueError("not a JKS store")
    if password is not None:
        made = hashlib.sha1(_chars(password) + _WHITENER + body).digest()
        if not hmac.compare_digest(made, digest):
            raise WrongPassword("the store's digest does not match")
    keys, trusted = [], []
    reader = _Reader(body)
    try:
        (_, version, count) = reader.take(">III")
        if version not in (1, 2):
            raise ValueError(f"JKS version {version} is unknown")
        for _ in range(count):
            (tag,) = reader.take(">I")
            alias = reader.text()
            reader.take(">q")
            if tag == _KEY:
                protected = reader.blob()
                (length,) = reader.take(">I")
                chain = tuple(reader.certificate(version) for _ in range(length))
                keys.append(KeyEntry(alias, protected, chain))
            elif tag == _TRUSTED:
                trusted.append(reader.certificate(version))
            else:
                raise ValueError(f"a JKS entry of kind {tag} is unknown")
    except (struct.error, UnicodeDecodeError):
        raise ValueError("the store ends within an entry") from None
    return JavaStore(tuple(keys), tuple(trusted))


class _Reader:
    """Takes big-endian fields from the front of bytes; struct.error when they end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def blob(self, prefix: str = ">I") -> bytes:
        (length,) = self.take(prefix)
        (data,) = struct.unpack_from(f"{length}s", self._data, self._at)
        self._at += length
        assert isinstance(data, bytes)
        return data

    def text(self) -> str:
        return self.blob(">H").decode("utf-8", "surrogatepass")

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.text()
        return self.blob()


def unlock(entry: KeyEntry, password: str) -> bytes:
    """Return the private key (PKCS#8, DER); WrongPassword, or ValueError unless protected as by Sun's."""
    _, outer = _der(entry.protected)
    _, algorithm = _der(outer)
    if not algorithm.startswith(_SUN_PROTECTION):
        raise ValueError("the key is protected in a way that JKS does not know")
    # Behind the algorithm of an EncryptedPrivateKeyInfo stands an OCTET STRING.
    _, locked = _der(outer[outer.index(algorithm) + len(algorithm) :])
    salt, encrypted, check = locked[:_DIGEST], locked[_DIGEST:-_DIGEST], locked[-_DIGEST:]
    secret, digest, stream = _chars(password), salt, b""
    while len(stream) < len(encrypted):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise WrongPassword("the key does not open")
    return key


def _der(data: bytes) -> tuple[int, bytes]:
    """Return tag and content of the first DER value."""
    if len(data) < 2:
        raise ValueError("DER that ends early")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if len(data) < start + length:
        raise ValueError("DER that ends early")
    return data[0], data[start : start + length]


def _chars(password: str) -> bytes:
    """Return a password as Java's char array: two bytes each."""
    return password.encode("utf-16-be", "surrogatepass")
