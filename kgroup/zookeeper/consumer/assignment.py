"""What a consumer fetches, and how far it has delivered (era 9.3 to 9.5)."""

from __future__ import annotations

from kgroup.zookeeper.consumer.events import Fetch
from kgroup.zookeeper.wire.messages import Offsets, Partition, PartitionAndOffset, StartFetcherRequest


class Assignment:
    """The draft's topic registry: positions are those of what was delivered, None where nothing was yet.

    `enabled` False keeps what the consumer has: of a new assignment it takes that alone, and never anything
    it was not given, for others may have it (era 9.8).
    """

    def __init__(self) -> None:
        self.positions: dict[Partition, int | None] = {}
        self.enabled = True
        self.must_reset = False
        self._threads: dict[Partition, str] = {}
        self._out_of_range: dict[Partition, int] = {}
        self._kept: set[Partition] = set()
        self._withheld: tuple[Fetch, ...] = ()

    @property
    def streams(self) -> dict[str, tuple[str, ...]]:
        """The topics of each thread's stream; made anew with every Start, as wildcards need it (era 9.5)."""
        topics: dict[str, dict[str, None]] = {}
        for partition, thread in sorted(self._threads.items()):
            topics.setdefault(thread, {})[partition.topic] = None
        return {thread: tuple(names) for thread, names in topics.items()}

    def out_of_range(self, partition: Partition) -> None:
        """The log does not have this position: the reset word is to be applied, at the next Start (OC-40)."""
        position = self.positions.get(partition)
        if position is not None:
            self._out_of_range[partition] = position
            self.must_reset = True

    def take(self, request: StartFetcherRequest) -> tuple[Fetch, ...]:
        """What to fetch from now on."""
        fetches = tuple(
            Fetch(thread, Partition(topic, name), self._where(Partition(topic, name), offset))
            for thread, partitions in request.ownership
            for topic, name, offset in partitions
        )
        self._withheld = ()
        if not self.enabled and self._kept:
            self._withheld = tuple(fetch for fetch in fetches if fetch.partition not in self._kept)
            fetches = tuple(fetch for fetch in fetches if fetch.partition in self._kept)
        self._set(fetches)
        return fetches

    def enable(self) -> tuple[Fetch, ...] | None:
        """Take on what was withheld; everything that is to be fetched then, None if nothing changes."""
        self.enabled = True
        if not self._withheld:
            return None
        now = [Fetch(self._threads[partition], partition, at) for partition, at in self.positions.items()]
        fetches = (*now, *self._withheld)
        self._withheld = ()
        self._set(fetches)
        return fetches

    def drop(self) -> None:
        """Nothing is fetched any more."""
        self.positions, self._threads, self._withheld = {}, {}, ()

    def offsets(self) -> Offsets:
        """Positions to report; a partition of which nothing was delivered yet has none."""
        known = sorted((p, offset) for p, offset in self.positions.items() if offset is not None)
        return tuple(PartitionAndOffset(p.topic, p.name, offset) for p, offset in known)

    def _set(self, fetches: tuple[Fetch, ...]) -> None:
        self.positions = {fetch.partition: fetch.offset for fetch in fetches}
        self._threads = {fetch.partition: fetch.thread_id for fetch in fetches}
        self._kept = set(self.positions) or self._kept

    def _where(self, partition: Partition, offset: int) -> int | None:
        """Where to begin; None is the reset word's, also where the stored position was out of range."""
        if self._out_of_range.pop(partition, None) == offset:
            return None
        return None if offset < 0 else offset
