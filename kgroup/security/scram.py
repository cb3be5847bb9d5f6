"""SCRAM on the broker's side: its stored credentials, and the exchange (RFC 5802, RFC 7677).

Kafka's rules if they differ from the RFCs (ScramSaslServer, ScramMessages): no channel binding, salts of any
length, names taken as they are, and a client's additions to its first message are ignored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
SALT_BYTES = 20
OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"

_SASLNAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASLNAME}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_FINAL = re.compile(
    rf"(?P<without_proof>c=[A-Za-z0-9+/=]+,r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}?)"
    r",p=(?P<proof>[A-Za-z0-9+/]+={0,2})"
)


class ScramMechanism(IntEnum):
    """The mechanisms by their number on the wire (KIP-554)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def spelling(self) -> str:
        """Its name in SASL."""
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @classmethod
    def named(cls, spelling: str) -> ScramMechanism:
        """Return the mechanism of that name; ValueError for another."""
        for mechanism in cls:
            if mechanism.spelling == spelling:
                return mechanism
        raise ValueError(spelling)


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A stored password: enough to check a proof, too little to make one."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of(
        cls, mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
    ) -> ScramCredential:
        """Return the credential behind a salted password."""
        client_key = _hmac(mechanism, salted_password, b"Client Key")
        stored = hashlib.new(mechanism.digest, client_key).digest()
        return cls(salt, stored, _hmac(mechanism, salted_password, b"Server Key"), iterations)


def salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password, all of a password that a broker receives."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


class ScramRefused(Exception):
    """The exchange ends here; the text is for the log.

    The client learns only that it was refused, unless there is a `message`; not even that when `silent`.
    """

    def __init__(self, why: str, message: str | None = None, *, silent: bool = False) -> None:
        super().__init__(why)
        self.message = message
        self.silent = silent


class ScramServer:
    """One exchange: `step` takes a client's message and returns the answer, twice.

    `user` is its owner once `done`. Raise ScramRefused for an invalid message, a user `find` does not know
    (it returns None), or a proof that is wrong.
    """

    def __init__(
        self, mechanism: ScramMechanism, find: Callable[[str], ScramCredential | None], nonce: str
    ) -> None:
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._first: re.Match[str] | None = None
        self._server_first = ""
        self._credential: ScramCredential | None = None
        self.user = ""
        self.done = False

    def step(self, said: bytes) -> bytes:
        try:
            text = said.decode()
        except UnicodeDecodeError:
            raise ScramRefused("a message that is not text") from None
        return self._final_step(text) if self._first is not None else self._first_step(text)

    def _first_step(self, text: str) -> bytes:
        first = _FIRST.fullmatch(text)
        if first is None:
            raise ScramRefused("an invalid first message")
        name = first["name"].replace("=2C", ",").replace("=3D", "=")
        credential = self._find(name)
        if credential is None:
            raise ScramRefused("there is no such user for this mechanism")
        if first["authzid"] and first["authzid"] != name:
            raise ScramRefused("it asks for an authorization id that is not the user's", OTHER_ID)
        self._first, self._credential, self.user = first, credential, name
        self._nonce = first["nonce"] + self._nonce
        salt = b64encode(credential.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first.encode()

    def _final_step(self, text: str) -> bytes:
        final, first, credential = _FINAL.fullmatch(text), self._first, self._credential
        assert first is not None and credential is not None
        if final is None or self.done:
            raise ScramRefused("an invalid final message")
        if final["nonce"] != self._nonce:
            raise ScramRefused("its nonce is not the one of this exchange")
        signed = f"{first['bare']},{self._server_first},{final['without_proof']}".encode()
        signature = _hmac(self._mechanism, credential.stored_key, signed)
        try:
            proof = b64decode(final["proof"], validate=True)
        except ValueError:
            raise ScramRefused("an invalid final message") from None
        if len(proof) != len(signature):
            raise ScramRefused("a proof of the wrong length", silent=True)
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(self._mechanism.digest, key).digest(), credential.stored_key):
            raise ScramRefused("the proof is wrong: another password")
        self.done = True
        return b"v=" + b64encode(_hmac(self._mechanism, credential.server_key, signed))


def _hmac(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, mechanism.digest).digest()
