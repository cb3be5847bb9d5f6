"""Who uses a classic group: plain consumers or Kafka Streams; of an empty one the traces tell.

Streams applications speak the consumer protocol type, so nothing at the broker keeps their group from being
converted, and then the application cannot join it any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import STREAM_ASSIGNOR
from kgroup.admin.read.applications import is_streams_metadata
from kgroup.admin.read.offsets import committed
from kgroup.admin.read.visibility import sees_every_topic
from kgroup.admin.refusals import code_name
from kgroup.domain import offsets_partition_of
from kgroup.errors import ErrorCode, KgroupError

CONSUMERS, KAFKA_STREAMS = "consumers", "Kafka Streams"
INTERNAL = ("-changelog", "-repartition")


@dataclass(frozen=True, slots=True)
class Kind:
    """Who uses a group: CONSUMERS, KAFKA_STREAMS, or None when nothing tells; and what shows it."""

    name: str | None
    because: str
    code: str | None = None
    """What kept it from being known, as an error's name, where that was a failure."""


def kind_of_assignor(assignor: str) -> Kind:
    """The kind of a group whose assignor is known."""
    if assignor == STREAM_ASSIGNOR:
        return Kind(KAFKA_STREAMS, "its members' assignor is stream, which only Kafka Streams has")
    return Kind(CONSUMERS, f"its assignor is {assignor}")


def kind_of_empty(cluster: ClusterView, group_id: str, topic_names: Collection[str]) -> Kind:
    """Who used a group that has no members now, by the traces they left.

    The metadata of its commits proves it (Streams writes its times there since 2.4, and nothing else does),
    and so does the assignor in records that compaction has left. An internal topic whose name begins with
    the group's proves nothing: it may be of an application whose name does too.
    """
    offsets = committed(cluster, [group_id])[group_id]
    if isinstance(offsets, KgroupError):
        return Kind(None, f"its commits could not be read: {offsets.message}", code_name(offsets))
    marked = [place for place, at in sorted(offsets.items()) if is_streams_metadata(at.metadata)]
    if marked:
        return Kind(KAFKA_STREAMS, f"the commit of {marked[0]} carries the metadata that Streams writes")
    code = None
    try:
        # The assignor in the newest record of the group that names one; None when none is left.
        from kgroup.history.raw import raw_rows
        from kgroup.history.sources.live import LiveLog, LiveTopic

        topic = LiveTopic(cluster.transport, cluster.retry.timeout_s, with_names=False)
        log = LiveLog(topic, offsets_partition_of(group_id, len(topic.partitions)))
        assignor = _newest(row for row in raw_rows(log, names=[group_id]) if row["type"] == 2)
    except KgroupError as error:
        assignor, code = None, code_name(error)
        otherwise = f"its records could not be read: {error.message}"
    else:
        otherwise = "its records do not tell its assignor any more"
    if assignor is not None:
        known = kind_of_assignor(assignor)
        return Kind(known.name, f"{known.because}, by its records")
    internal = sorted(t for t in topic_names if t.startswith(f"{group_id}-") and t.endswith(INTERNAL))
    if internal:
        whose = f"{internal[0]} is of a Streams application, of this name or of a longer one"
        return Kind(None, f"{whose}, and {otherwise}", code)
    if not sees_every_topic(cluster):
        hidden = "not all topics, hence commits, may be seen without Describe on Topic *"
        return Kind(None, f"{hidden}, and {otherwise}", ErrorCode.TOPIC_AUTHORIZATION_FAILED.name)
    if offsets:
        return Kind(CONSUMERS, f"{otherwise}, and no commit of it is one of Kafka Streams (2.4 or later)")
    return Kind(None, f"it has no commits, and {otherwise}", code)


def _newest(rows: Iterable[dict[str, object]]) -> str | None:
    last = None
    for row in rows:
        value = row.get("value")
        if isinstance(value, dict) and value.get("protocol"):
            last = str(value["protocol"])
    return last
