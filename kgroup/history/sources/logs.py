"""Where a history comes from: segment files and folders of Kafka, of our own data folder, or of a capture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kgroup.domain import OFFSETS_TOPIC, uuid_bytes
from kgroup.errors import KgroupError, StorageError
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.items import BadRange
from kgroup.history.sources.chunks import Progress, file_chunks
from kgroup.history.sources.clusters import check_one_cluster

TOPICS_FILE = "topics.json"
"""In a folder of segments: topic names and their ids, where no broker can be asked."""
_PARTITION_FILE = "partition.metadata"
_PARTITION = re.compile(rf"{OFFSETS_TOPIC}-(\d+)")
_SEGMENT = re.compile(r"\d{20}\.log")


class OffsetsLog(Protocol):
    """The log of one partition of `__consumer_offsets`, read from its start."""

    partition: int
    bad: list[BadRange]
    failure: KgroupError | None
    """Why the log was not read to its end, None if it was."""

    @property
    def source(self) -> str:
        """Where it is, for people."""
        ...

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
        """Chunks with the batches in each, in order; each must be used up before the next is asked for.

        `progress` is told the bytes read since the last call.
        """
        ...


@dataclass(slots=True)
class SegmentLog:
    """One partition's segment files, by base offset."""

    partition: int
    files: tuple[Path, ...]
    check_crc: bool = True
    bad: list[BadRange] = field(default_factory=list)
    failure: KgroupError | None = None

    @property
    def source(self) -> str:
        return str(self.files[0].parent)

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(_size(file) for file in self.files)

    @property
    def readable(self) -> bool:
        """Whether every file can be opened."""
        try:
            for path in self.files:
                path.open("rb").close()
        except OSError:
            return False
        return True

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
        for path in self.files:
            scanner = Scanner(str(path), check_crc=self.check_crc)
            try:
                yield from file_chunks(path, scanner, progress)
            except OSError as error:
                end = max(_size(path), scanner.position)
                reason = f"cannot be read: {error.strerror}"
                # A disk that fails in one segment may give the next.
                self.bad += [*scanner.bad, BadRange(str(path), scanner.position, end, reason)]
                continue
            self.bad += scanner.bad
            # From its first byte on nothing is a batch: another file, and not a damaged segment.
            if not scanner.batches and scanner.bad and scanner.bad[0].start == 0:
                self.bad[-1] = BadRange(str(path), 0, scanner.bad[-1].end, "not a segment of Kafka's log")


def _size(path: Path) -> int:
    """Bytes in a file; 0 for one that has gone meanwhile."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def segments_of(paths: Sequence[Path]) -> tuple[dict[int, tuple[Path, ...]], str | None]:
    """The segment files in these files and folders by partition, and the id of their cluster if it is told.

    See `segment_logs`.
    """
    found: dict[int, set[Path]] = {}
    for path in paths:
        if not path.exists():
            raise StorageError(f"{path} does not exist")
        files = [path] if path.is_file() else _segments_below(path)
        if not files:
            raise StorageError(
                f"{path} holds no segment of {OFFSETS_TOPIC}",
                hint=f"wanted: files like {'0' * 20}.log in folders like {OFFSETS_TOPIC}-7",
            )
        for file in files:
            _check_topic(file)
            found.setdefault(_partition_of(file), set()).add(file)
    partitions = {
        number: tuple(sorted(files, key=lambda f: (f.name, str(f))))
        for number, files in sorted(found.items())
    }
    return partitions, check_one_cluster(partitions)


def segment_logs(paths: Sequence[Path], check_crc: bool = True) -> list[SegmentLog]:
    """The partitions found in these files and folders (searched through), by number.

    A file counts if it is named like a segment (20 digits, `.log`); a file named outright always does. The
    partition is in the folder's name (`__consumer_offsets-7`), else 0. Raises StorageError where there is
    nothing to read, ConfigError for segments of several clusters.
    """
    partitions, _ = segments_of(paths)
    return [SegmentLog(number, files, check_crc) for number, files in partitions.items()]


def looks_like_segments(path: Path) -> bool:
    """Whether a word is a segment file that is there, or a folder named like a partition of the topic."""
    if path.is_file():
        return path.suffix == ".log"
    return path.is_dir() and _PARTITION.fullmatch(path.name) is not None


def _segments_below(folder: Path) -> list[Path]:
    """Segments of the offsets topic below a folder; in a folder of other topics too, theirs are left out."""
    files = [path for path in folder.rglob("*.log") if _SEGMENT.fullmatch(path.name) and path.is_file()]
    own = [path for path in files if _PARTITION.fullmatch(path.parent.name)]
    return own or [path for path in files if path.parent == folder]


def _check_topic(file: Path) -> None:
    """StorageError for a segment in a broker's folder of another topic."""
    folder = file.resolve().parent
    if (folder / _PARTITION_FILE).exists() and not _PARTITION.fullmatch(folder.name):
        topic = folder.name.rpartition("-")[0]
        raise StorageError(f"{file} is a segment of {topic or folder.name}, not of {OFFSETS_TOPIC}")


def _partition_of(file: Path) -> int:
    named = _PARTITION.fullmatch(file.resolve().parent.name)
    return int(named[1]) if named else 0


def topic_names_near(paths: Iterable[Path]) -> dict[bytes, str]:
    """Topic ids → names as the folders around the segments tell them.

    From `topics.json` (a capture has it) and from Kafka's `partition.metadata` in the folders of the same
    data directory, which ours writes too. What cannot be read is left out: ids are shown instead.
    """
    found: dict[bytes, str] = {}
    folders = set()
    for path in paths:
        at = path.resolve()
        folders |= {at, at.parent, at.parent.parent} if at.is_dir() else {at.parent, at.parent.parent}
    for folder in sorted(folders):
        found |= _topics_file(folder / TOPICS_FILE)
        for metadata in folder.glob(f"*-*/{_PARTITION_FILE}"):
            found |= _partition_metadata(metadata)
    return found


def _topics_file(path: Path) -> dict[bytes, str]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return {uuid_bytes(topic_id): name for name, topic_id in told.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _partition_metadata(path: Path) -> dict[bytes, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        values = dict(line.split(": ", 1) for line in lines if ": " in line)
        return {uuid_bytes(values["topic_id"]): path.parent.name.rpartition("-")[0]}
    except (OSError, ValueError, KeyError):
        return {}


def write_topics_file(folder: Path, names: Mapping[bytes, str]) -> None:
    """Keep topic ids beside captured segments, so that a replay without a broker can name topics."""
    from kgroup.domain import uuid_text

    told = {name: uuid_text(topic_id) for topic_id, name in sorted(names.items(), key=lambda item: item[1])}
    (folder / TOPICS_FILE).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
