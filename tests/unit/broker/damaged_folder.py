"""A data folder with something of everything, ways to damage its files, and what an operator then sees."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import DecodeError, KgroupError
from kgroup.log.compaction import compact
from kgroup.log.files import CATALOG
from kgroup.log.interface import Log
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import LogRecord, batches_in
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic

GROUPS = [f"group-{n}" for n in range(6)]
SETTINGS = {
    "offsets.topic.segment.bytes": "1000",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.segment.bytes": "300",
}


def opened(folder: Path) -> EmbeddedTransport:
    return EmbeddedTransport(Cluster(folder, config=SETTINGS, offsets_partitions=2, clock=ManualClock()))


def commit(transport: EmbeddedTransport, group: str, partition: int, offset: int) -> None:
    part = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=(part,))
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
    )
    (answer,) = transport.request(0, request, max_version=9).topics[0].partitions  # type: ignore[attr-defined]
    assert answer.error_code == 0


def fill(folder: Path, rounds: int) -> EmbeddedTransport:
    """Sealed, compacted and active segments of each kind of partition; left open."""
    transport = opened(folder)
    cluster = transport.cluster
    if "t" not in cluster.catalog.topics:
        create_topic(transport, "t", 3, **{"internal.segment.bytes": "500"})
        cluster.configure_group(GROUPS[0], {"consumer.session.timeout.ms": "45001"})
    create_topic(transport, f"made-{rounds}", 1)
    cluster.configure_group(GROUPS[1], {"consumer.session.timeout.ms": f"4500{rounds}"})
    for number in range(rounds):
        for at, group in enumerate(GROUPS):
            commit(transport, group, (number + at) % 3, number * 10 + at)
        for name in ("one", "two"):
            transport.request(None, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000))
        for partition in (0, 1):
            record = LogRecord(b"k%d" % number, b"v%d-%d" % (partition, number) * 5, (), 1000 + number)
            log_of(cluster, "t", partition).append([record])
    return transport


def log_of(cluster: Cluster, topic: str, partition: int) -> Log:
    found = cluster.log(topic, partition)
    assert found is not None
    return found


@dataclass
class Image:
    """A folder as a stop left it, and what is to be seen in it."""

    folder: Path
    clean: bool
    seen: dict[str, Any]


def image(base: Path, *, clean: bool) -> Image:
    """A folder after a clean stop, or as a kill leaves one that was stopped cleanly before."""
    folder = base / "made"
    transport = fill(folder, 8)
    for topic in ("__consumer_offsets", "__transaction_state"):
        found = log_of(transport.cluster, topic, 0)
        assert isinstance(found, PartitionLog)
        compact(found, now_ms=0)
    log_of(transport.cluster, "t", 0).delete_before(2)
    transport.close()
    left = base / "left"
    transport = fill(folder, 3)
    if not clean:
        shutil.copytree(folder, left)
    transport.close()
    if clean:
        shutil.copytree(folder, left)
    seen, said = look(_copy(left, base / "pristine"))
    assert not said
    assert not any(isinstance(value, Refusal) for value in seen.values())
    return Image(left, clean, seen)


def _copy(folder: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
    return to


@dataclass(frozen=True)
class Refusal:
    """Something that is not served, and why; `before` is what could still be read of it."""

    reason: str
    before: tuple[Any, ...] = ()


class _Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.exc_info is None, record.getMessage()
        self.lines.append(record.getMessage())


def look(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What a process that opens the folder serves, and what it says; anything but a KgroupError is raised."""
    said = _Said()
    logger = logging.getLogger("kgroup")
    logger.addHandler(said)
    propagate, logger.propagate = logger.propagate, False
    try:
        transport = opened(folder)
    except KgroupError as error:
        return {"folder": Refusal(f"{error.message} {error.hint}")}, said.lines
    else:
        try:
            return dict(_parts(transport, said.lines)), said.lines
        finally:
            transport.close()
    finally:
        logger.removeHandler(said)
        logger.propagate = propagate


def _parts(transport: EmbeddedTransport, said: list[str]) -> Iterator[tuple[str, Any]]:
    cluster = transport.cluster
    catalog = cluster.catalog
    yield "cluster", (cluster.cluster_id, dict(catalog.topics), catalog.group_configs)
    for number, shard in enumerate(cluster.shards):
        name = f"__consumer_offsets-{number}"
        if shard is None:
            yield name, Refusal(_line(said, name))
            continue
        offsets = shard.coordinator.state.offsets
        found = {(g, p): s.value for g in GROUPS for p in range(3) if (s := offsets.get(g, "t", p))}
        yield name, (offsets.count(), found, sorted(shard.coordinator.state.groups), shard.log.end_offset)
    for number, transactions in enumerate(transport.dispatcher.transactions.shards):
        name = f"__transaction_state-{number}"
        if transactions is None:
            yield name, Refusal(_line(said, name))
        else:
            ids = sorted(map(repr, transactions.coordinator.transactions.values()))
            yield name, (ids, transactions.log.end_offset)
    for partition in (0, 1):
        yield f"t-{partition}", _records(cluster, partition)


def _line(said: list[str], name: str) -> str:
    """The line that says why; a refusal nobody hears of is none."""
    return next(line for line in said if name in line and "cannot be loaded" in line)


def _records(cluster: Cluster, partition: int) -> Any:
    """What a consumer of the topic gets: it checks the records' checksums, as all clients do."""
    read: list[Any] = []
    try:
        log = log_of(cluster, "t", partition)
        position = log.start_offset
        read.append(position)
        while raw := log.read(position, 700):
            for batch in batches_in(raw):
                read += [(r.offset, r.timestamp_ms, r.key, r.value) for r in batch.records]
                position = batch.last_offset + 1
        read += [log.offset_for_timestamp(at) for at in (0, 1001, 1004, 1007, 2000)]
        read.append(log.end_offset)
    except (KgroupError, DecodeError) as error:
        return Refusal(error.message, tuple(read))
    return tuple(read)


def damages(file: Path, others: list[Path], many: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Ways to damage a file; flips and cuts at up to `many` places each."""
    size = file.stat().st_size
    yield "deleted", file.unlink
    if not size:
        return
    yield "emptied", lambda: file.write_bytes(b"")
    yield "zeroed", lambda: file.write_bytes(bytes(size))
    chance = random.Random(file.name)
    places = sorted({chance.randrange(size) for _ in range(many)})
    for place in places:
        yield f"flipped at {place}", lambda place=place: _flip(file, place, 1 << place % 8)  # type: ignore[misc]
    for place in places:
        yield f"cut at {place}", lambda place=place: file.write_bytes(file.read_bytes()[:place])  # type: ignore[misc]
    for other in others:
        yield f"swapped with {other.parent.name}/{other.name}", lambda other=other: _swap(file, other)  # type: ignore[misc]


def _flip(file: Path, place: int, bit: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[place] ^= bit
    file.write_bytes(raw)


def _swap(file: Path, other: Path) -> None:
    mine, theirs = file.read_bytes(), other.read_bytes()
    file.write_bytes(theirs)
    other.write_bytes(mine)


def _is_prefix(file: Path, whole: Path) -> bool:
    return file.suffix == ".log" and file.exists() and whole.read_bytes().startswith(file.read_bytes())


def _is_whole_lines(file: Path, whole: Path) -> bool:
    """Whether a catalog is as it was before its last changes."""
    if file.name != CATALOG:
        return False
    lines = whole.read_bytes().splitlines(keepends=True)
    ends = [b"".join(lines[:count]).rstrip(b"\n") for count in range(1, len(lines))]
    return file.exists() and file.read_bytes().rstrip(b"\n") in ends


def _active(image: Image) -> list[Path]:
    """The segments that were appended to, of each partition."""
    newest = {path.parent: path.relative_to(image.folder) for path in sorted(image.folder.rglob("*.log"))}
    return list(newest.values())


def judged(image: Image, folder: Path, file: Path, *, swapped: bool) -> list[str]:
    """What is wrong with a look at the folder, `file` of which is damaged: less than was there, in silence.

    After a kill, a segment that ends with one of the batches appended since the last clean stop is as a kill
    a moment earlier would have left it, and nothing can tell; nor if they were swapped for such batches of
    another partition. The same holds for the changes in the catalog.
    """
    whole_changes = not image.clean and _is_whole_lines(folder / file, image.folder / file)
    whole_batches = not image.clean and (
        _is_prefix(folder / file, image.folder / file) or (swapped and file in _active(image))
    )
    seen, said = look(folder)
    if isinstance(seen.get("folder"), Refusal):
        return []
    wrong = []
    torn = [line for line in said if "are kept in" in line]
    earlier = whole_changes or (not image.clean and any(f"/{CATALOG} " in line for line in torn))
    for name, whole in image.seen.items():
        found = seen.get(name)
        if found == whole:
            continue
        if isinstance(found, Refusal):
            if found.before and found.before != whole[: len(found.before)]:
                wrong.append(f"{name}: other records before it is refused: {found}")
        elif (whole_batches and (swapped or name == file.parent.name)) or (earlier and name == "cluster"):
            continue
        elif image.clean or not any(f"/{name}/" in line for line in torn):
            wrong.append(f"{name}: {found} instead of {whole}, said: {said}")
    for line in torn:
        kept = Path(line.rpartition("are kept in ")[2])
        if not kept.stat().st_size:
            wrong.append(f"nothing is kept: {line}")
    return wrong
