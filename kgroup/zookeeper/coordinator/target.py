"""Who is to own what: by range, each topic on its own, as in 0.7 and 0.8 (era 7.4, OC-31)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kgroup.zookeeper.coordinator.registries import RegisteredConsumer
from kgroup.zookeeper.wire.messages import Partition


def target_of(
    members: Iterable[RegisteredConsumer], topics: Mapping[str, Sequence[str]]
) -> dict[Partition, str]:
    """The thread of each partition: P div T each, and the first P mod T threads one more."""
    members = list(members)
    owners: dict[Partition, str] = {}
    for topic in sorted(topics):
        threads = sorted(
            thread_id(member.consumer_id, stream)
            for member in members
            for stream in range(member.subscription.streams_of(topic))
        )
        if threads:
            owners.update(_ranges(topic, sorted(topics[topic], key=by_broker_and_number), threads))
    return owners


def thread_id(consumer_id: str, stream: int) -> str:
    """A consumer's streams are threads, numbered from 0 (era 4.5)."""
    return f"{consumer_id}-{stream}"


def consumer_of(thread: str) -> str:
    """The consumer a thread id belongs to, "" if it is none."""
    consumer_id, dash, stream = thread.rpartition("-")
    return consumer_id if dash and stream.isdecimal() else ""


def by_broker_and_number(name: str) -> tuple[int, int, str]:
    """Sorts "10" behind "9" and, in 0.7's form, "1-0" behind "0-3"."""
    broker, _, number = name.rpartition("-")
    numeric = number.isdecimal() and (not broker or broker.isdecimal())
    return (int(broker or 0), int(number), "") if numeric else (0, 0, name)


def _ranges(topic: str, names: list[str], threads: list[str]) -> dict[Partition, str]:
    quota, extra = divmod(len(names), len(threads))
    owners, start = {}, 0
    for position, thread in enumerate(threads):
        end = start + quota + (position < extra)
        owners.update(dict.fromkeys((Partition(topic, name) for name in names[start:end]), thread))
        start = end
    return owners
