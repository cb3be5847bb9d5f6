"""Identify a classic group's users, plain consumers or Kafka Streams; for an empty one from its traces.

Streams applications speak the consumer protocol type, so brokers do not prevent the conversion of their
groups, after which the application cannot join.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import STREAM_ASSIGNOR, Committed
from kgroup.admin.read.applications import is_streams_metadata
from kgroup.admin.read.offsets import committed
from kgroup.admin.read.visibility import sees_every_topic
from kgroup.admin.refusals import code_name
from kgroup.errors import DecodeError, ErrorCode, KgroupError

if TYPE_CHECKING:
    from kgroup.history.sources.logs import OffsetsLog

CONSUMERS, KAFKA_STREAMS = "consumers", "Kafka Streams"
INTERNAL = ("-changelog", "-repartition")
GROUP_METADATA = b"\0\2"
"""The beginning of the key of a record that names a classic group's assignor."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The users of a group: CONSUMERS, KAFKA_STREAMS, or None when nothing shows it; and the evidence."""

    name: str | None
    because: str
    code: str | None = None
    """The error's name, where a failure kept the kind unknown."""


def kind_of_assignor(assignor: str) -> Kind:
    """Return the kind of a group whose assignor is known."""
    if assignor == STREAM_ASSIGNOR:
        return Kind(KAFKA_STREAMS, "its members' assignor is stream, which only Kafka Streams has")
    return Kind(CONSUMERS, f"its assignor is {assignor}")


def kinds_of_empty(
    cluster: ClusterView, group_ids: Sequence[str], topic_names: Collection[str]
) -> dict[str, Kind]:
    """Return the former users of each of the groups, which have no members now, from their traces.

    The metadata of its commits proves it (Streams writes its times there since 2.4, and nothing else does),
    and so does the assignor in records that compaction has left. An internal topic whose name begins with the
    group's proves nothing: the application's name may begin with it too.
    """
    kinds: dict[str, Kind] = {}
    stored: dict[str, Committed] = {}
    for group_id, offsets in committed(cluster, group_ids).items() if group_ids else ():
        if isinstance(offsets, KgroupError):
            unread = f"its commits could not be read: {offsets.message}"
            kinds[group_id] = Kind(None, unread, code_name(offsets))
        elif marked := [
            partition
            for partition, metadata in zip(offsets.places, offsets.metadata, strict=True)
            if is_streams_metadata(metadata)
        ]:
            because = f"the commit of {marked[0]} carries the metadata that Streams writes"
            kinds[group_id] = Kind(KAFKA_STREAMS, because)
        else:
            stored[group_id] = offsets.by_place
    internal = sorted(topic for topic in topic_names if topic.endswith(INTERNAL))
    unproven: dict[str, tuple[str, str | None]] = {}
    for group_id, assignor in _last_assignors(cluster, stored).items():
        if isinstance(assignor, str):
            known = kind_of_assignor(assignor)
            kinds[group_id] = Kind(known.name, f"{known.because}, by its records")
            continue
        code, otherwise = None, "its records do not name its assignor any more"
        if assignor is not None:
            code, otherwise = code_name(assignor), f"its records could not be read: {assignor.message}"
        at = bisect_left(internal, f"{group_id}-")
        if at < len(internal) and internal[at].startswith(f"{group_id}-"):
            whose = f"{internal[at]} is of a Streams application, of this name or of a longer one"
            kinds[group_id] = Kind(None, f"{whose}, and {otherwise}", code)
        else:
            unproven[group_id] = otherwise, code
    if unproven and not sees_every_topic(cluster):
        hidden = "not all topics, hence commits, may be seen without Describe on Topic *"
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
        return kinds | {g: Kind(None, f"{hidden}, and {why}", denied) for g, (why, _) in unproven.items()}
    return kinds | {
        g: Kind(CONSUMERS, f"{why}, and no commit of it is one of Kafka Streams (2.4 or later)")
        if stored[g]
        else Kind(None, f"it has no commits, and {why}", code)
        for g, (why, code) in unproven.items()
    }


def _last_assignors(cluster: ClusterView, group_ids: Collection[str]) -> Answers[str | None]:
    """Return the assignor in the newest record of each group that names one; None when none is left.

    Each partition is read once; a failure to read it is the answer for its groups.
    """
    if not group_ids:
        return {}
    from kgroup.admin.read.history import read_each
    from kgroup.history.sources.live import LiveTopic

    try:
        topic = LiveTopic(cluster.transport, cluster.retry.timeout_s, with_names=False)
    except KgroupError as error:
        return dict.fromkeys(group_ids, error)
    return read_each(topic, group_ids, _newest)


def _newest(log: OffsetsLog, names: Collection[str]) -> dict[str, str | None]:
    from kgroup.history.decode.records import group_of, raw_records
    from kgroup.history.decode.scan import CONTROL
    from kgroup.protocol.group_records import GroupMetadataKey, GroupMetadataValue, decode_key, decode_value

    last: dict[str, str | None] = dict.fromkeys(names)
    for chunk, headers in log.batches():
        for header in headers:
            if header.attributes & CONTROL:
                continue
            # Commits are most of a log: only the records that can name an assignor are decoded.
            with suppress(DecodeError):
                for record in raw_records(chunk, header):
                    if record.key is None or record.key[:2] != GROUP_METADATA:
                        continue
                    if group_of(record.key) not in last:
                        continue
                    with suppress(DecodeError):
                        key = decode_key(record.key)
                        assert isinstance(key, GroupMetadataKey)
                        value = decode_value(key, record.value)
                        if isinstance(value, GroupMetadataValue) and value.protocol:
                            last[key.group] = value.protocol
    return last
