"""A real Kafka and ours, with the same listeners, the same users and the same keys for tokens."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

from tests.interop.kafka import SASL_MECHANISMS, USERS, RealKafka, TlsFiles
from tests.interop.kgroup_server import EXECUTABLE, KgroupServer
from tests.interop.server import free_port

PROTOCOLS = {
    "SSL": "SSL",
    "MTLS": "SSL",
    "SASL_PLAINTEXT": "SASL_PLAINTEXT",
    "SASL_SSL": "SASL_SSL",
}
"""Listeners beside PLAINTEXT; MTLS wants certificates of clients and names them by `RULES`."""
RULES = "RULE:^CN=([a-z]+),.*$/$1/U,DEFAULT"
AUDIENCE, KEY_ID = "brokers", "test-key"
MODULES = "org.apache.kafka.common.security"


class Tokens:
    """A key that signs tokens, and the JWKS with its public half, in a file."""

    def __init__(self, folder: Path) -> None:
        import jwt
        from cryptography.hazmat.primitives.asymmetric import rsa

        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        self.jwks = folder / "jwks.json"
        self.jwks.write_text(json.dumps({"keys": [{**public, "kid": KEY_ID, "use": "sig", "alg": "RS256"}]}))
        self._folder = folder

    def issue(self, user: str, for_s: int = 3600, **claims: object) -> str:
        """A token that says it is `user`."""
        import jwt

        now = int(time.time())
        said = {"sub": user, "aud": AUDIENCE, "iat": now, "exp": now + for_s, **claims}
        return jwt.encode(said, self._key, "RS256", headers={"kid": KEY_ID})

    def file(self, user: str, **claims: object) -> Path:
        """The same, in a file of its own."""
        path = self._folder / f"token-{user}-{len(claims)}"
        path.write_text(self.issue(user, **claims))  # type: ignore[arg-type]
        return path


def locks(jwks: Path) -> dict[str, str]:
    """What both servers are told of MTLS and of tokens, besides what RealKafka tells of TLS and users."""
    found = {
        "sasl.enabled.mechanisms": ",".join((*SASL_MECHANISMS, "OAUTHBEARER")),
        "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "ssl.client.auth": "none",
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.principal.mapping.rules": RULES,
    }
    for name in ("sasl_plaintext", "sasl_ssl"):
        oauth = f"listener.name.{name}.oauthbearer.sasl"
        found[f"{oauth}.jaas.config"] = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
        found[f"{oauth}.server.callback.handler.class"] = (
            f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        )
    return found


STORE, KEY = "store-secret", "key-secret"


def java_stores(tls: TlsFiles) -> dict[str, str]:
    """The stores of MTLS in JKS, of SASL_SSL in PKCS12, as the keytool at hand makes them; SSL keeps PEM."""
    given: dict[str, str] = {}
    for listener, kind, key_password in (("mtls", "JKS", KEY), ("sasl_ssl", "PKCS12", STORE)):
        keys, trust = (tls.ca.with_name(f"{listener}-{what}.store") for what in ("keys", "trust"))
        if not keys.exists():
            _make_stores(tls, keys, trust, kind, key_password)
        prefix = f"listener.name.{listener}.ssl."
        given |= {
            f"{prefix}keystore.location": str(keys),
            f"{prefix}keystore.type": kind,
            f"{prefix}keystore.password": STORE,
            f"{prefix}key.password": key_password,
            f"{prefix}truststore.location": str(trust),
            f"{prefix}truststore.type": kind,
            f"{prefix}truststore.password": STORE,
        }
    return given


def _make_stores(tls: TlsFiles, keys: Path, trust: Path, kind: str, key_password: str) -> None:
    whole = tls.ca.with_name("server.p12")
    made = ["openssl", "pkcs12", "-export", "-in", str(tls.server), "-name", "broker"]
    to = ["-deststoretype", kind, "-deststorepass", STORE, "-destkeypass", key_password]
    from_ = ["-srcstoretype", "PKCS12", "-srcstorepass", STORE, "-srcalias", "broker"]
    for command in (
        [*made, "-passout", f"pass:{STORE}", "-out", str(whole)],
        ["keytool", "-importkeystore", "-noprompt", "-srckeystore", str(whole), "-destkeystore", str(keys)]
        + from_
        + to,
        ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(tls.ca), "-keystore", str(trust)]
        + ["-storetype", kind, "-storepass", STORE],
    ):
        subprocess.run(command, check=True, capture_output=True)


class LockedKafka(RealKafka):
    """Kafka with all of them; `more` goes on top of its properties."""

    def __init__(self, base: Path, more: Mapping[str, str] | None = None, javas: bool = False) -> None:
        super().__init__(more, tuple(PROTOCOLS), base=base)
        self.tokens = Tokens(base)
        self.javas = javas

    def properties(self) -> dict[str, str]:
        map_ = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **PROTOCOLS}
        found = {
            **super().properties(),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in map_.items()),
            **locks(self.tokens.jwks),
            **(java_stores(self.tls) if self.javas else {}),
        }
        return {**found, **self.overrides}

    def command(self) -> list[str]:
        java, *rest = super().command()
        url = self.tokens.jwks.as_uri()
        return [java, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}", *rest]


class LockedKgroup(KgroupServer):
    """Ours, from the file of properties that Kafka would be given."""

    def __init__(self, base: Path, more: Mapping[str, str] | None = None, javas: bool = False) -> None:
        super().__init__(None, base)
        self.tokens = Tokens(base)
        self.javas = javas
        self.listener_ports = {name: free_port() for name in PROTOCOLS}
        self.more = dict(more or {})

    address = RealKafka.address
    _has = RealKafka._has
    _tls_properties = RealKafka._tls_properties
    _sasl_properties = RealKafka._sasl_properties

    @cached_property
    def tls(self):  # type: ignore[no-untyped-def]
        """The PEM files of this broker, made on first use."""
        return RealKafka.__dict__["tls"].func(self)

    def start(self, timeout: float = 180.0) -> Self:
        """Start, and add the users of SCRAM as an operator would."""
        new = not self.data_dir.exists()
        super().start(timeout)
        for user, password in USERS.items() if new else ():
            for mechanism in SASL_MECHANISMS[1:]:
                arguments = ("cluster", "user", "add", user, "--mechanism", mechanism, "--password-file", "-")
                command = [EXECUTABLE, *arguments, "-b", self.bootstrap]
                subprocess.run(command, input=f"{password}\n", text=True, check=True)
        return self

    def properties(self) -> dict[str, str]:
        kinds = {"PLAINTEXT": self.port, **self.listener_ports}
        served = ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in kinds.items())
        return {
            "listeners": served,
            "advertised.listeners": served,
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in PROTOCOLS.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            **self._tls_properties(),
            **self._sasl_properties(),
            **locks(self.tokens.jwks),
            **(java_stores(self.tls) if self.javas else {}),
            **self.more,
        }

    def command(self) -> list[str]:
        file = self.base / "server.properties"
        file.write_text("".join(f"{k}={v}\n" for k, v in self.properties().items()))
        file.chmod(0o600)
        command = super().command()
        at = command.index("--port")
        del command[at : at + 2]
        return [*command, "--config", str(file), "--verbose"]


Locked = LockedKafka | LockedKgroup
