"""A real Kafka with every lock a client may meet: OAUTHBEARER, Kerberos, sessions that end."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from tests.token_server import jwt

from .jvm import LIGHT_JVM, java
from .kafka import RealKafka
from .server import TOOLS

_SECURITY = "org.apache.kafka.common.security"
ISSUER, AUDIENCE = "kgroup-tests", "kafka"


class Issuer:
    """A key that signs tokens, and the file by which a broker knows it."""

    def __init__(self, folder: Path) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        self.jwks = folder / "jwks.json"
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "kid": "k1",
            "alg": "RS256",
            "use": "sig",
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }
        self.jwks.write_text(json.dumps({"keys": [key]}))

    def token(self, lives_s: float = 3600, **more: Any) -> str:
        """A token that the broker takes for `alice` unless told otherwise."""
        now = time.time()
        claims = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + lives_s, **more}
        return jwt(self._sign, {"alg": "RS256", "kid": "k1", "typ": "JWT"}, **claims)

    def _sign(self, signed: bytes) -> bytes:
        return self._key.sign(signed, padding.PKCS1v15(), SHA256())


def _number(value: int) -> str:
    return (
        base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8, "big")).rstrip(b"=").decode()
    )


class LockedKafka(RealKafka):
    """SASL_PLAINTEXT and SASL_SSL with PLAIN, SCRAM, OAUTHBEARER and, where there is a realm, GSSAPI.

    Sessions end after `session_ms` unless they are renewed.
    """

    kafka = TOOLS  # it starts with options of its own, on these jars alone

    def __init__(
        self,
        folder: Path,
        issuer: Issuer,
        kerberos: tuple[Path, Path] | None = None,
        session_ms: int = 4000,
        overrides: dict[str, str] | None = None,
    ) -> None:
        """`kerberos` is the realm's krb5.conf and the broker's keytab."""
        super().__init__(overrides, ("SSL", "SASL_PLAINTEXT", "SASL_SSL"), base=folder)
        self._issuer, self._kerberos, self._session_ms = issuer, kerberos, session_ms

    def command(self) -> list[str]:
        url = self._issuer.jwks.as_uri()
        options = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"]
        options += [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={self._issuer.jwks}"]
        if self._kerberos:
            options += [f"-Djava.security.krb5.conf={self._kerberos[0]}"]
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        return java(
            "kafka.Kafka", str(self._properties_file), jvm=(f"-Xmx{self.heap}", *LIGHT_JVM, level, *options)
        )

    def _sasl_properties(self) -> dict[str, str]:
        properties = super()._sasl_properties()
        more = ["OAUTHBEARER", *(["GSSAPI"] if self._kerberos else [])]
        properties["sasl.enabled.mechanisms"] += "," + ",".join(more)
        properties["connections.max.reauth.ms"] = str(self._session_ms)
        for kind in ("sasl_plaintext", "sasl_ssl"):
            oauth = f"listener.name.{kind}.oauthbearer."
            properties[oauth + "sasl.jaas.config"] = (
                f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;"
            )
            properties[oauth + "sasl.server.callback.handler.class"] = (
                f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            )
            properties[oauth + "sasl.oauthbearer.jwks.endpoint.url"] = self._issuer.jwks.as_uri()
            properties[oauth + "sasl.oauthbearer.expected.audience"] = AUDIENCE
            properties[oauth + "sasl.oauthbearer.expected.issuer"] = ISSUER
            if self._kerberos:
                properties[f"listener.name.{kind}.gssapi.sasl.jaas.config"] = (
                    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
                    f'keyTab="{self._kerberos[1]}" principal="kafka/127.0.0.1";'
                )
        if self._kerberos:
            properties["sasl.kerberos.service.name"] = "kafka"
        return properties
