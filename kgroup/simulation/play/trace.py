"""A run as its log shows it: the events of history, with the faults between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from kgroup.errors import KgroupError
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.log_items import BadRange
from kgroup.history.replay import replay
from kgroup.history.sources.chunks import Progress
from kgroup.log.memory import MemoryLog
from kgroup.simulation.play.chaos import Run
from kgroup.simulation.world.world import START_MS


@dataclass(slots=True)
class SimulatedLog:
    """The log of a run's partition, as history reads logs (`history.sources.OffsetsLog`)."""

    partition: int
    log: MemoryLog
    bad: list[BadRange] = field(default_factory=list)
    failure: KgroupError | None = None

    @property
    def source(self) -> str:
        return f"offsets partition {self.partition} of the run"

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
        data = b"".join(batch.raw for batch in self.log.batches())
        yield data, Scanner(self.source).headers(data, True)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a trace; `at_ms` counts from the start of the run. A fault belongs to no group."""

    at_ms: int
    kind: str
    group_id: Annotated[str | None, "null: a fault"]
    detail: str


def trace(run: Run) -> list[Line]:
    """Return what happened, in order: what the records say, and the faults."""
    logs = [SimulatedLog(p.number, p.log) for p in run.world.brokers.partitions]
    names = {topic.topic_id: topic.name for topic in run.world.image.by_name.values()}
    story = replay(logs, topic_names=names)
    lines = [
        Line(event.timestamp_ms - START_MS, str(event.kind), event.group, event.detail)
        for event in story.events
    ]
    lines += [Line(fault.at_ms - START_MS, "fault", None, fault.what) for fault in run.faults]
    return sorted(lines, key=lambda line: line.at_ms)


def text_of(lines: Sequence[Line]) -> str:
    """Return the lines for people: time, group, event."""
    return "\n".join(
        f"{line.at_ms / 1000:9.3f}  {line.group_id or '-':<16} {line.kind:<24} {line.detail}".rstrip()
        for line in lines
    )
