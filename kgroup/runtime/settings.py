"""The broker's own settings, under Kafka's names; the group.* ones are GroupConfig's.

What a broker says for topics that set nothing of their own is in `kgroup.runtime.broker_settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from kgroup.coordinator.config import whole_number
from kgroup.errors import ConfigError

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NODE_IDS = ("node.id", "broker.id")
INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Kind:
    """How a setting is written and which values it may have."""

    key: str
    read: Callable[[str, Kind], Any]
    low: int = 0
    high: int = INT32_MAX


def _int(text: str, kind: Kind) -> int:
    try:
        # As Java reads it: int() reads 1_0 as 10.
        value = whole_number(text, -(1 << 63), (1 << 63) - 1)
    except ValueError:
        raise ConfigError(f"{kind.key}={text} is not a whole number") from None
    if not kind.low <= value <= kind.high:
        raise ConfigError(f"{kind.key}={text}: must be between {kind.low} and {kind.high}")
    return value


def _bool(text: str, kind: Kind) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{kind.key}={text}: must be true or false")
    return text.lower() == "true"


def _authorizer(text: str, kind: Kind) -> str:
    if text not in ("", STANDARD_AUTHORIZER):
        raise ConfigError(f"{kind.key}={text}: the only one here is {STANDARD_AUTHORIZER}")
    return text


def _principals(text: str, kind: Kind) -> str:
    for each in split_principals(text):
        if ":" not in each:
            raise ConfigError(
                f"{kind.key}: {each!r} is not KIND:NAME, as User:alice; several with ';' between"
            )
    return text


def split_principals(text: str) -> tuple[str, ...]:
    """Return the principals of `super.users`, as Kafka separates them."""
    return tuple(each.strip() for each in text.split(";") if each.strip())


def _number(key: str, default: int, low: int = 0, high: int = INT32_MAX) -> Any:
    return field(default=default, metadata={"kind": Kind(key, _int, low, high)})


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of the broker around the coordinator; defaults are Kafka's, except one replica and
    shorter segments of the logs of state: compacting one stops all requests while it is read.
    """

    node_id: int = _number("node.id", 0)
    broker_id: int = _number("broker.id", 0)
    auto_create_topics: bool = field(
        default=True, metadata={"kind": Kind("auto.create.topics.enable", _bool)}
    )
    num_partitions: int = _number("num.partitions", 1, low=1)
    default_replication_factor: int = _number("default.replication.factor", 1, low=1)
    offsets_partitions: int = _number("offsets.topic.num.partitions", 50, low=1, high=10_000)
    offsets_replication_factor: int = _number("offsets.topic.replication.factor", 1, low=1, high=32_767)
    offsets_segment_bytes: int = _number("offsets.topic.segment.bytes", 16 << 20, low=1)
    transaction_partitions: int = _number("transaction.state.log.num.partitions", 50, low=1, high=10_000)
    transaction_replication_factor: int = _number("transaction.state.log.replication.factor", 1, low=1)
    transaction_segment_bytes: int = _number("transaction.state.log.segment.bytes", 16 << 20, low=1)
    transaction_max_timeout_ms: int = _number("transaction.max.timeout.ms", 900_000, low=1)
    transactional_id_expiration_ms: int = _number("transactional.id.expiration.ms", 604_800_000, low=1)
    share_state_partitions: int = _number(
        "share.coordinator.state.topic.num.partitions", 50, low=1, high=10_000
    )
    share_state_replication_factor: int = _number(
        "share.coordinator.state.topic.replication.factor", 1, low=1, high=32_767
    )
    share_state_segment_bytes: int = _number("share.coordinator.state.topic.segment.bytes", 16 << 20, low=1)
    share_updates_per_snapshot: int = _number("share.coordinator.snapshot.update.records.per.snapshot", 500)
    share_cold_snapshot_ms: int = _number(
        "share.coordinator.cold.partition.snapshot.interval.ms", 300_000, low=1
    )
    share_prune_ms: int = _number("share.coordinator.state.topic.prune.interval.ms", 300_000, low=1)
    cleaner_backoff_ms: int = _number("log.cleaner.backoff.ms", 15_000, low=1, high=1 << 53)
    fetch_max_bytes: int = _number("fetch.max.bytes", 57_671_680, low=1024)
    fetch_sessions_max: int = _number("max.incremental.fetch.session.cache.slots", 1000)
    request_max_bytes: int = _number("socket.request.max.bytes", 104_857_600, low=1)
    connections_max: int = _number("max.connections", INT32_MAX)
    connections_max_idle_ms: int = _number("connections.max.idle.ms", 600_000, low=1, high=1 << 53)
    setup_timeout_ms: int = _number("kgroup.connections.setup.timeout.ms", 15_000, low=1, high=1 << 53)
    """For a TLS handshake, and for SASL behind it."""
    authorizer: str = field(default="", metadata={"kind": Kind("authorizer.class.name", _authorizer)})
    super_users: str = field(default="", metadata={"kind": Kind("super.users", _principals)})
    open_by_default: bool = field(
        default=False, metadata={"kind": Kind("allow.everyone.if.no.acl.found", _bool)}
    )

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return Kafka's setting name → the field that has it."""
        return {f.metadata["kind"].key: f.name for f in fields(cls)}

    def given_node_id(self, settings: Mapping[str, str]) -> int | None:
        """Return the first broker's id, by either of its names; None without a setting."""
        given = {
            getattr(self, name) for key, name in self.names().items() if key in settings and key in NODE_IDS
        }
        if len(given) > 1:
            raise ConfigError(f"node.id={self.node_id} and broker.id={self.broker_id}: give one of them")
        return given.pop() if given else None

    @classmethod
    def bounds(cls, key: str) -> tuple[int, int]:
        """Return the lowest and the highest value of a setting that is a number."""
        kind = next(f.metadata["kind"] for f in fields(cls) if f.metadata["kind"].key == key)
        return kind.low, kind.high

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self:
        """Return the settings given, on top of the defaults; unknown names raise ConfigError."""
        values: dict[str, Any] = {}
        kinds = {f.metadata["kind"].key: (f.name, f.metadata["kind"]) for f in fields(cls)}
        for key, text in settings.items():
            if key not in kinds:
                raise ConfigError(f"the setting {key} is unknown")
            name, kind = kinds[key]
            values[name] = kind.read(text.strip(), kind)
        return cls(**values)

    def as_text(self) -> dict[str, str]:
        """Return Kafka's setting name → the value in force, as Kafka writes it."""
        found = ((key, getattr(self, name)) for key, name in self.names().items())
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in found}
