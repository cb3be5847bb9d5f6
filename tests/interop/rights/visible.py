"""What of an answer both brokers must show alike: codes, names, and what may be done; not where and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TypeAlias

Seen: TypeAlias = "dict[str, Seen] | list[Seen] | int | str | bool | None"

KEPT = frozenset(
    {
        "authorized_operations",
        "cluster_authorized_operations",
        "committed_offset",
        "error_code",
        "group_id",
        "group_state",
        "high_watermark",
        "host",
        "is_internal",
        "iterations",
        "key",
        "mechanism",
        "name",
        "num_partitions",
        "operation",
        "partition",
        "partition_error_code",
        "partition_id",
        "partition_index",
        "pattern_type",
        "permission_type",
        "principal",
        "protocol_type",
        "resource_name",
        "resource_type",
        "source_topics",
        "status_code",
        "status_detail",
        "subscribed_topic_names",
        "topic",
        "topic_authorized_operations",
        "topic_config_error_code",
        "topic_name",
        "transaction_state",
        "transactional_id",
        "user",
    }
)
LEFT_OUT = frozenset({"aborted_transactions", "brokers", "node_endpoints", "synonyms"})
OF_BROKER = 4  # the brokers' own settings differ by more than rights
COUNTED = frozenset({"configs"})
"""Lists of which only this counts: whether there is anything in them."""
NOT_HOSTS = frozenset({"Coordinator", "FindCoordinatorResponse"})
"""Where `host` is a broker's, not a rule's."""


def visible(found: object, topics: Mapping[bytes, str]) -> Seen:
    """An answer as plain values, lists in an order of their own; topic ids by their topics' names."""
    if not is_dataclass(found):
        return found if isinstance(found, int | str) or found is None else str(found)
    seen: dict[str, Seen] = {}
    for field in fields(found):
        value = getattr(found, field.name)
        if field.name in LEFT_OUT or (field.name == "host" and type(found).__name__ in NOT_HOSTS):
            continue
        if field.name == "topic_id":
            seen["topic_id"] = topics.get(value, "" if not any(value) else "?")
        elif field.name in COUNTED:
            if getattr(found, "resource_type", 0) != OF_BROKER:
                seen[field.name] = bool(value)
        elif isinstance(value, tuple):
            listed = [visible(each, topics) for each in value if not _internal(each)]
            if listed and (isinstance(listed[0], dict) or field.name in KEPT):
                seen[field.name] = sorted(listed, key=repr)
            elif field.name not in ("replica_nodes", "isr_nodes"):
                seen[field.name] = len(listed)
        elif is_dataclass(value) or field.name in KEPT:
            seen[field.name] = visible(value, topics)
    return seen


def ids_in(found: object) -> Iterator[bytes]:
    """The ids of topics in an answer."""
    if isinstance(found, tuple):
        for each in found:
            yield from ids_in(each)
    elif is_dataclass(found):
        for field in fields(found):
            value = getattr(found, field.name)
            if field.name == "topic_id" and any(value):
                yield value
            elif isinstance(value, tuple):
                yield from ids_in(value)


def _internal(entry: object) -> bool:
    """Whether an entry is of a topic of state, which one of two brokers may not have made yet."""
    names = (getattr(entry, field, None) for field in ("name", "topic", "topic_name"))
    return any(isinstance(name, str) and name.startswith("__") for name in names)
