"""The broker's own settings, each a row; those of groups are GroupConfig's.

What a broker sets for topics that set nothing of their own is in `kgroup.runtime.broker_settings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgroup.errors import ConfigError
from kgroup.numbers import INT32_MAX
from kgroup.settings import BOOLEAN, LONG, SHORT, STRING, Setting, Settings, number

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NODE_IDS = ("node.id", "broker.id")
_LONGEST_MS = 1 << 53
_STATE_BYTES = 16 << 20


def _authorizer(name: str) -> str:
    if name not in ("", STANDARD_AUTHORIZER):
        raise ValueError(f"the only one here is {STANDARD_AUTHORIZER}")
    return name


def _principals(text: str) -> str:
    for principal in split_principals(text):
        if ":" not in principal:
            raise ValueError(f"{principal!r} is not KIND:NAME, as User:alice; several with ';' between")
    return text


def split_principals(text: str) -> tuple[str, ...]:
    """Return the principals of `super.users`, as Kafka separates them."""
    return tuple(principal.strip() for principal in text.split(";") if principal.strip())


@dataclass(frozen=True, slots=True)
class BrokerSettings(Settings):
    """Settings of the broker around the coordinator; defaults are Kafka's, except one replica and
    shorter segments of the logs of state: compacting one stops all requests while it is read.
    """

    node_id: int = number("node.id", 0).field("The id of this broker.")
    broker_id: int = number("broker.id", 0).field("The id of this broker; another name of node.id.")
    auto_create_topics: bool = Setting("auto.create.topics.enable", BOOLEAN, True).field(
        "Whether asking for a missing topic creates it."
    )
    num_partitions: int = number("num.partitions", 1, 1).field(
        "Partitions of a topic whose creator names no number."
    )
    default_replication_factor: int = number("default.replication.factor", 1, 1).field(
        "Replicas of a topic whose creator names no number."
    )
    offsets_partitions: int = number("offsets.topic.num.partitions", 50, 1, 10_000).field(
        "Partitions of __consumer_offsets; fixed once it exists."
    )
    offsets_replication_factor: int = number("offsets.topic.replication.factor", 1, 1, type=SHORT).field(
        "Replicas of __consumer_offsets."
    )
    offsets_segment_bytes: int = number("offsets.topic.segment.bytes", _STATE_BYTES, 1).field(
        "Size of segments of __consumer_offsets, in bytes."
    )
    transaction_partitions: int = number("transaction.state.log.num.partitions", 50, 1, 10_000).field(
        "Partitions of __transaction_state; fixed once it exists."
    )
    transaction_replication_factor: int = number(
        "transaction.state.log.replication.factor", 1, 1, type=SHORT
    ).field("Replicas of __transaction_state.")
    transaction_segment_bytes: int = number("transaction.state.log.segment.bytes", _STATE_BYTES, 1).field(
        "Size of segments of __transaction_state, in bytes."
    )
    transaction_max_timeout_ms: int = number("transaction.max.timeout.ms", 900_000, 1).field(
        "The longest transaction timeout a producer may ask for."
    )
    transactional_id_expiration_ms: int = number("transactional.id.expiration.ms", 604_800_000, 1).field(
        "How long an unused transactional id is kept."
    )
    share_state_partitions: int = number("share.coordinator.state.topic.num.partitions", 50, 1, 10_000).field(
        "Partitions of __share_group_state."
    )
    share_state_replication_factor: int = number(
        "share.coordinator.state.topic.replication.factor", 1, 1, type=SHORT
    ).field("Replicas of __share_group_state.")
    share_state_segment_bytes: int = number(
        "share.coordinator.state.topic.segment.bytes", _STATE_BYTES, 1
    ).field("Size of segments of __share_group_state, in bytes.")
    share_updates_per_snapshot: int = number(
        "share.coordinator.snapshot.update.records.per.snapshot", 500
    ).field("Updates between two snapshots.")
    share_cold_snapshot_ms: int = number(
        "share.coordinator.cold.partition.snapshot.interval.ms", 300_000, 1
    ).field("How long a partition is unchanged before it gets a snapshot.", internal=True)
    share_prune_ms: int = number("share.coordinator.state.topic.prune.interval.ms", 300_000, 1).field(
        "How often __share_group_state is pruned.", internal=True
    )
    cleaner_backoff_ms: int = number("log.cleaner.backoff.ms", 15_000, 1, _LONGEST_MS, type=LONG).field(
        "Pause between two checks for logs to compact.", dynamic=True
    )
    fetch_max_bytes: int = number("fetch.max.bytes", 57_671_680, 1024).field(
        "The most bytes that one fetch returns."
    )
    fetch_sessions_max: int = number("max.incremental.fetch.session.cache.slots", 1000).field(
        "The most fetch sessions of this broker."
    )
    request_max_bytes: int = number("socket.request.max.bytes", 104_857_600, 1).field(
        "The largest request, in bytes."
    )
    connections_max: int = number("max.connections", INT32_MAX).field(
        "The most connections of this broker.", dynamic=True
    )
    connections_max_idle_ms: int = number(
        "connections.max.idle.ms", 600_000, 1, _LONGEST_MS, type=LONG
    ).field("How long a connection may be idle before it is closed.")
    setup_timeout_ms: int = number(
        "kgroup.connections.setup.timeout.ms", 15_000, 1, _LONGEST_MS, type=LONG
    ).field("How long a TLS handshake may take, and SASL after it.")
    authorizer: str = Setting("authorizer.class.name", STRING, "", check=_authorizer).field(
        "The authorizer; empty means that no rights are checked."
    )
    super_users: str = Setting("super.users", STRING, "", check=_principals).field(
        "Principals that no ACL binds, separated by semicolons."
    )
    open_by_default: bool = Setting("allow.everyone.if.no.acl.found", BOOLEAN, False).field(
        "Whether a resource without ACLs is open to all."
    )

    def given_node_id(self, settings: Mapping[str, str]) -> int | None:
        """Return the first broker's id, by either of its names; None without a setting."""
        given = {
            getattr(self, name) for key, name in self.names().items() if key in settings and key in NODE_IDS
        }
        if len(given) > 1:
            raise ConfigError(f"node.id={self.node_id} and broker.id={self.broker_id}: give one of them")
        return given.pop() if given else None
