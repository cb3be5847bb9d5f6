"""A cluster of its own for a test, with brokers in this process."""

from __future__ import annotations

import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from kgroup.arguments import checked
from kgroup.domain import EPOCH_TYPES
from kgroup.errors import ConfigError
from kgroup.protocol.releases import NEWEST, Release
from kgroup.security.acls import Acl
from kgroup.testing.verbs import Verbs

if TYPE_CHECKING:
    from kgroup.runtime.cluster import Cluster as Embedded
    from kgroup.testing.serving import Serving

T = TypeVar("T")
DEFAULTS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    **{
        f"group.{kind}.{name}": text
        for kind in EPOCH_TYPES
        for name, text in (
            ("heartbeat.interval.ms", "100"),
            ("min.heartbeat.interval.ms", "100"),
            ("assignment.interval.ms", "0"),
        )
    },
    "group.streams.initial.rebalance.delay.ms": "0",
}
"""Overrides of Kafka's defaults: clients need not wait, and fewer partitions are created."""
OWN_USER = "kgroup-testing"
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
ITERATIONS = 4096
"""The fewest that Kafka allows, for a fast start."""
LOCK = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": MECHANISMS,
    "connection.failed.authentication.delay.ms": "0",
}
_USER = re.compile(r"[\w.@-]+")
_RULE = re.compile(r"(\w+) +(topic|group|transactional-id|cluster)(?: +(\S+))?", re.IGNORECASE)
RULE_EXAMPLE = "as 'Read topic orders', 'All group pay-*' or 'Create cluster'"


class Cluster(Verbs):
    """A cluster from `start` (or entering) to `stop`: brokers on loopback, all in memory, free ports.

    `topics` are names, or names with their number of partitions. `settings` are a broker's, by Kafka's names.
    With `users`, names with passwords, clients authenticate by SASL (PLAIN, SCRAM); `client` returns the
    properties. With `acls`, each user may do what its rules allow, "OPERATION RESOURCE NAME" as in "Read
    topic orders"; "pay-*" is a prefix, and a user without rules may do nothing. Versions and features are
    those of the release `kafka`, such as "2.8", and from 4.3 on its behaviour too. ConfigError for invalid
    arguments.

    Its functions may be called from any thread, and from a coroutine: the brokers run in another thread.
    """

    @checked
    def __init__(
        self,
        topics: Mapping[str, int] | Sequence[str] = (),
        *,
        brokers: int = 1,
        settings: Mapping[str, str | int | bool] | None = None,
        users: Mapping[str, str] | None = None,
        acls: Mapping[str, Sequence[str]] | None = None,
        kafka: str = str(NEWEST),
        timeout_s: float = 30.0,
    ) -> None:
        self._topics = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        for name, partitions in self._topics.items():
            if partitions < 1:
                raise ConfigError(
                    f"topic {name} cannot have {partitions!r} partitions", "give a number from 1 on"
                )
        self._brokers = brokers
        self._kafka = Release.of(kafka)
        self._settings = dict(DEFAULTS)
        for name, value in (settings or {}).items():
            self._settings[name] = str(value).lower() if isinstance(value, bool) else str(value)
        if acls is not None and users is None:
            raise ConfigError("acls are for users, and users is missing", 'add users={"alice": "secret"}')
        self._users = _users(users or {})
        self._acls = [
            acl for user, texts in (acls or {}).items() for acl in _rules_of(user, texts, self._users)
        ]
        self._locked = users is not None
        self._checked = acls is not None
        self._password = secrets.token_hex(16)
        self._timeout_s = timeout_s
        self._admin = None  # before the brokers run
        self._one_at_a_time = threading.RLock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._serving: Serving | None = None
        self._faults = []
        self._plays = []

    @property
    def bootstrap(self) -> str:
        """The addresses of the brokers, "127.0.0.1:PORT,…"; ConfigError while the cluster is not running."""
        return self._running().bootstrap

    @property
    def brokers(self) -> tuple[str, ...]:
        """The address of each broker, by node id."""
        return tuple(self.bootstrap.split(","))

    @checked
    def client(self, user: str | None = None, mechanism: str = "PLAIN") -> dict[str, str]:
        """Return the properties for a client of librdkafka, as `user` if the cluster has users.

        `kgroup.connect(kafka.bootstrap, kafka.client("alice"))` takes them, too. ConfigError for an unknown
        user.
        """
        settings = {"bootstrap.servers": self.bootstrap}
        if user is None and not self._locked:
            return settings
        if user not in self._users:
            named = ", ".join(self._users) or "none: give users={...}"
            raise ConfigError(f"{user!r} is not a user of this cluster", f"its users are {named}")
        if mechanism not in MECHANISMS.split(","):
            raise ConfigError(f"the mechanism {mechanism!r} is not served", f"one of {MECHANISMS}")
        return {**settings, **_login(user, self._users[user], mechanism)}

    def start(self) -> Self:
        """Start the brokers and create the topics; entering does this. ConfigError if they already run."""
        from kgroup.admin.acls import Acls

        if self._serving is not None:
            raise ConfigError("the cluster is running already", "use one Cluster for each cluster")
        from kgroup.broker.authentication.settings import listeners_apart
        from kgroup.broker.control.presence import OWN_CLIENT
        from kgroup.runtime.clock import MovableClock
        from kgroup.runtime.cluster import Cluster as Embedded
        from kgroup.runtime.settings import STANDARD_AUTHORIZER
        from kgroup.testing.serving import Serving

        settings = dict(self._settings)
        if self._locked:
            users = {OWN_USER: self._password, **self._users}
            quoted = {name: text.replace("\\", "\\\\").replace('"', '\\"') for name, text in users.items()}
            given = " ".join(f'user_{name}="{text}"' for name, text in quoted.items())
            login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {given};"
            jaas = {"listener.name.sasl_plaintext.plain.sasl.jaas.config": login}
            settings = {**LOCK, **settings, **jaas}
        if self._checked:
            settings["authorizer.class.name"] = STANDARD_AUTHORIZER
            settings["super.users"] = f"User:{OWN_USER}"
        listeners, config = listeners_apart(settings)
        embedded = Embedded(brokers=self._brokers, config=config, clock=MovableClock(), kafka=self._kafka)
        self._admit(embedded)
        self._serving = Serving(embedded, listeners)
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="kgroup-testing-")
            own = _login(OWN_USER, self._password, "PLAIN") if self._locked else None
            journal = Path(self._folder.name) / "journal.jsonl"
            super().__init__(
                self.bootstrap, own, timeout_s=self._timeout_s, journal=journal, client_id=OWN_CLIENT
            )
            replicas = min(embedded.settings.default_replication_factor, self._brokers)
            for name, partitions in self._topics.items():
                self.create_topic(name, partitions, replicas=replicas)
            if self._acls:
                with self.admin() as admin:
                    Acls(admin).add(self._acls)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Close connections, stop the brokers, and drop all data; safe to call twice."""
        serving, self._serving = self._serving, None
        self._faults = []
        plays, self._plays = self._plays, []
        for play in plays:
            play.halt()
        if serving is not None:
            serving.stop()
        for play in plays:
            play.join()
        if self._folder is not None:
            self.close()
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        faults = self._faults
        self.stop()
        if not any(raised):
            for fault in faults:
                fault.check()

    async def __aenter__(self) -> Self:
        return await _elsewhere(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _elsewhere(self.stop)

    def _running(self) -> Serving:
        if self._serving is None:
            raise ConfigError("the cluster does not run", "use it inside `with Cluster() as kafka:`")
        return self._serving

    def _admit(self, embedded: Embedded) -> None:
        """Register the users on the brokers for SCRAM, too."""
        from kgroup.security.scram import SALT_BYTES, ScramCredential, ScramMechanism, salted

        credentials = {}
        for name, password in self._users.items():
            for mechanism in ScramMechanism:
                salt = secrets.token_bytes(SALT_BYTES)
                derived = salted(mechanism, password, salt, ITERATIONS)
                credentials[name, mechanism] = ScramCredential.of(mechanism, derived, salt, ITERATIONS)
        if credentials:
            embedded.credentials.change(credentials)


async def _elsewhere(work: Callable[[], T]) -> T:
    import asyncio  # here: most tests import kgroup.testing without it

    return await asyncio.to_thread(work)


def _users(users: Mapping[str, str]) -> dict[str, str]:
    for name, password in users.items():
        if not _USER.fullmatch(name) or name == OWN_USER:
            raise ConfigError(f"{name!r} cannot be the name of a user here", "letters, digits and . @ - _")
        if not password:
            raise ConfigError(f"user {name} has no password", f'write users={{"{name}": "secret"}}')
    return dict(users)


def _rules_of(user: str, texts: Sequence[str], users: Mapping[str, str]) -> Iterator[Acl]:
    from kgroup.security.acl_specs import Resources, Terms, new_acls

    if user not in users:
        raise ConfigError(f"acls names {user!r}, who is not in users", f"users has {', '.join(users)}")
    for text in texts:
        match = _RULE.fullmatch(text.strip())
        kind = match[2].lower() if match else ""
        if match is None or (match[3] is None) != (kind == "cluster"):
            raise ConfigError(f"{text!r} is not a rule", RULE_EXAMPLE)
        name = match[3] or ""
        prefixed = len(name) > 1 and name.endswith("*")
        names = (name.removesuffix("*") if prefixed else name,)
        resources = {
            "topic": Resources(topics=names),
            "group": Resources(groups=names),
            "transactional-id": Resources(transactional_ids=names),
            "cluster": Resources(cluster=True),
        }[kind]
        pattern = "prefixed" if prefixed else "literal"
        terms = Terms(principals=[f"User:{user}"], operations=[match[1]], pattern=pattern)
        yield from new_acls(resources, terms)


def _login(user: str, password: str, mechanism: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }
