"""How each client is told of a lock, in its own names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.interop.kafka import USERS
from tests.sampled import FULL

MODULES = "org.apache.kafka.common.security"
CLIENTS = ("java", "franz-go", "librdkafka", "kafka-python", "aiokafka", "kgroup")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@dataclass(frozen=True)
class Lock:
    """A listener, its protocol, and the mechanism it is entered by; "" for none."""

    listener: str
    protocol: str
    mechanism: str = ""

    @property
    def id(self) -> str:
        return f"{self.listener}-{self.mechanism}".rstrip("-")


LOCKS = (
    Lock("SSL", "SSL"),
    Lock("MTLS", "SSL"),
    *(
        Lock(protocol, protocol, mechanism)
        for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism in MECHANISMS
    ),
)


def cells(kinds: Sequence[str], locks: Sequence[Lock] = LOCKS) -> list[tuple[str, Lock, str]]:
    """Broker, lock and client of each cell of the table that is played, one broker behind the other.

    The sample is a third of them: each client at each broker, with each mechanism and each protocol, and each
    lock at each broker.
    """
    numbered = [
        (b + l + c, (broker, lock, client))
        for b, broker in enumerate(kinds)
        for l, lock in enumerate(locks)  # noqa: E741
        for c, client in enumerate(CLIENTS)
    ]
    return [cell for number, cell in numbered if FULL or number % 3 == 0]


@dataclass(frozen=True)
class Keys:
    """What a client shows at a lock: a user's password or token, and the files of TLS."""

    ca: Path
    certificate: Path | None = None
    user: str = "alice"
    password: str = USERS["alice"]
    token: Path | None = None

    def config(self, client: str, lock: Lock) -> dict[str, str]:
        """The settings in the names of this client."""
        return {
            "java": self.java,
            "kgroup": self.kgroup,
            "librdkafka": self.librdkafka,
            "kafka-python": self.kafka_python,
            "aiokafka": self.kafka_python,
            "franz-go": self.franz_go,
        }[client](lock)

    def java(self, lock: Lock) -> dict[str, str]:
        found = {"security.protocol": lock.protocol}
        if lock.protocol.endswith("SSL"):
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
            if self.certificate:
                found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificate)}
        if lock.mechanism:
            module = "plain.PlainLoginModule" if lock.mechanism == "PLAIN" else "scram.ScramLoginModule"
            login = f'{MODULES}.{module} required username="{self.user}" password="{self.password}";'
            if lock.mechanism == "OAUTHBEARER":
                login = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required token="{self._token()}";'
                found["sasl.login.callback.handler.class"] = "kgroup.interop.TokenLogin"
            found |= {"sasl.mechanism": lock.mechanism, "sasl.jaas.config": login}
        return found

    def kgroup(self, lock: Lock) -> dict[str, str]:
        found = self.java(lock)
        if lock.mechanism == "OAUTHBEARER":
            assert self.token is not None
            del found["sasl.login.callback.handler.class"]
            found["sasl.jaas.config"] = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;"
            found["sasl.oauthbearer.token.endpoint.url"] = self.token.as_uri()
        return found

    def librdkafka(self, lock: Lock) -> dict[str, str]:
        found = {"security.protocol": lock.protocol}
        if lock.protocol.endswith("SSL"):
            found["ssl.ca.location"] = str(self.ca)
            if self.certificate:
                found["ssl.certificate.location"] = found["ssl.key.location"] = str(self.certificate)
        if lock.mechanism:
            found["sasl.mechanism"] = lock.mechanism
            if lock.mechanism == "OAUTHBEARER":
                found["token"] = self._token()
            else:
                found |= {"sasl.username": self.user, "sasl.password": self.password}
        return found

    def kafka_python(self, lock: Lock) -> dict[str, str]:
        found = {"security_protocol": lock.protocol}
        if lock.protocol.endswith("SSL"):
            found["ssl_cafile"] = str(self.ca)
            if self.certificate:
                found["ssl_certfile"] = found["ssl_keyfile"] = str(self.certificate)
        if lock.mechanism:
            found["sasl_mechanism"] = lock.mechanism
            if lock.mechanism == "OAUTHBEARER":
                found["token"] = self._token()
            else:
                found |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
        return found

    def franz_go(self, lock: Lock) -> dict[str, str]:
        found = {}
        if lock.protocol.endswith("SSL"):
            found["ca"] = str(self.ca)
            if self.certificate:
                found["certificate"] = str(self.certificate)
        if lock.mechanism:
            found |= {"mechanism": lock.mechanism, "user": self.user, "password": self.password}
            if lock.mechanism == "OAUTHBEARER":
                found["token"] = self._token()
        return found

    def _token(self) -> str:
        assert self.token is not None
        return self.token.read_text()
