"""The sources of a history: segment files and folders of Kafka, of our own data folder, or of a capture."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC, uuid_bytes, uuid_text
from kgroup.errors import ConfigError, KgroupError, StorageError, StorageMissing
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.log_items import BadRange
from kgroup.history.sources.chunks import Progress, file_chunks
from kgroup.history.sources.clusters import check_one_cluster
from kgroup.history.sources.copies import Chosen, Stretch, chosen, in_order
from kgroup.history.sources.folders import Folder, read_small
from kgroup.history.sources.layout import (
    FORMER,
    MANIFEST,
    AnyFile,
    AnyFolder,
    folder_of,
    is_packed,
    is_packed_segment,
    is_segment,
    may_matter,
    partition_in,
    refuse_packed,
    size_of,
    text_of,
)
from kgroup.storage.files import RemoteFile
from kgroup.storage.location import Location
from kgroup.storage.opening import open_store
from kgroup.storage.options import StorageOptions

TOPICS_FILE = "topics.json"
"""In a folder of segments: topic names and their ids, for when no broker can be asked."""
_PARTITION_FILE = "partition.metadata"
_READ_AT_ONCE = 16


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
        """Yield chunks with the batches in each, in order; use each up before requesting the next.

        `progress` receives the bytes read since the last call.
        """
        ...


@dataclass(slots=True)
class SegmentLog:
    """One partition's segment files, in order; where copies are merged, `stretches` of them are read."""

    partition: int
    files: tuple[AnyFile, ...]
    check_crc: bool = True
    bad: list[BadRange] = field(default_factory=list)
    failure: KgroupError | None = None
    stretches: tuple[Stretch, ...] = ()

    @property
    def source(self) -> str:
        return str(self.files[0].parent)

    @property
    def size(self) -> int:
        """The bytes to read."""
        return sum((_size(s.file) if s.end is None else s.end) - s.start for s in self.to_read)

    @property
    def to_read(self) -> tuple[Stretch, ...]:
        """What is read, in order."""
        return self.stretches or tuple(Stretch(file, 0, None, -1) for file in self.files)

    @property
    def readable(self) -> bool:
        """Whether every file can be opened."""
        try:
            for path in self.files:
                if isinstance(path, Path):
                    path.open("rb").close()
        except OSError:
            return False
        return True

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
        for stretch in self.to_read:
            path = stretch.file
            scanner = Scanner(str(path), position=stretch.start, check_crc=self.check_crc)
            try:
                yield from file_chunks(path, scanner, progress, end=stretch.end)
            except OSError as error:
                end = max(_size(path), scanner.position)
                reason = f"cannot be read: {error.strerror}"
                # A disk that fails in one segment may read the next.
                self.bad += [*scanner.bad, BadRange(str(path), scanner.position, end, reason)]
                continue
            self.bad += scanner.bad
            # No batch from its first byte on: another kind of file, and not a damaged segment.
            if not scanner.batches and scanner.bad and scanner.bad[0].start == 0:
                self.bad[-1] = BadRange(str(path), 0, scanner.bad[-1].end, "not a segment of Kafka's log")


def _size(path: AnyFile) -> int:
    """Return the bytes in a file; 0 for one that has gone meanwhile."""
    try:
        return size_of(path)
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a scan of files and folders: the segments to read by partition, in order."""

    partitions: Mapping[int, Chosen]
    cluster: str | None = None
    """The id of their cluster, if a file next to them has it."""
    notes: tuple[str, ...] = ()
    """Copies of partitions that add nothing, and damage that other copies make up for."""
    neighbours: tuple[RemoteFile, ...] = ()
    """Objects near the segments that name topics."""
    state: Mapping[int, Chosen] = field(default_factory=dict)
    """The segments of `__share_group_state` by partition, in order."""


def segments_of(places: Sequence[Path | Location], options: StorageOptions | None = None) -> Look:
    """Return the segment files in these files and folders, on this machine or at URLs; see `segment_logs`."""
    segments: dict[int, set[AnyFile]] = {}
    shared: dict[int, set[AnyFile]] = {}
    neighbours: list[RemoteFile] = []
    for location in places:
        if isinstance(location, Location) and not location.is_local:
            below = _remote(location, options or StorageOptions())
        else:
            path = location if isinstance(location, Path) else location.local
            if not path.exists():
                raise StorageError(f"{path} does not exist")
            inside = (
                file
                for file in path.rglob("*.*")
                if _wanted(file) and not _of_former(file.relative_to(path).parts) and file.is_file()
            )
            below = _Below([_unpacked(path)] if path.is_file() else _own(inside, path))
        if not below.segments:
            raise StorageError(
                f"{location} holds no segment of {OFFSETS_TOPIC}",
                hint=f"wanted: files like {'0' * 20}.log in folders like {OFFSETS_TOPIC}-7",
            )
        for file in below.segments:
            folder = folder_of(file)
            if (number := partition_in(folder, SHARE_STATE_TOPIC)) is not None:
                shared.setdefault(number, set()).add(file)
                continue
            number = partition_in(folder)
            if number is None and text_of(folder, _PARTITION_FILE, file) is not None:
                topic = folder.name.rpartition("-")[0] or folder.name
                raise StorageError(f"{file} is a segment of {topic}, not of {OFFSETS_TOPIC}")
            segments.setdefault(number or 0, set()).add(file)
        neighbours += below.neighbours
    partitions, state = _ordered(segments), _ordered(shared)
    cluster, other = check_one_cluster(partitions), check_one_cluster(state) if state else None
    if None not in (cluster, other) and cluster != other:
        raise ConfigError(
            f"segments of {OFFSETS_TOPIC} are of cluster {cluster}, those of {SHARE_STATE_TOPIC} of {other}",
            "read one cluster at a time: name its folders only",
        )
    kept, notes = chosen(partitions)
    kept_state, more = chosen(state)
    notes += [f"{SHARE_STATE_TOPIC}, {note}" for note in more]
    return Look(kept, cluster or other, tuple(notes), tuple(neighbours), kept_state)


def _ordered(partitions: Mapping[int, set[AnyFile]]) -> dict[int, tuple[AnyFile, ...]]:
    return {number: tuple(in_order([*files])) for number, files in sorted(partitions.items())}


def segment_logs(
    places: Sequence[Path | Location], options: StorageOptions | None = None
) -> list[SegmentLog]:
    """Return the partitions found in these files and folders (searched through), by number.

    A file counts if it is named like a segment (`layout`); an explicitly named file always does. The
    partition is in the folder's name (`__consumer_offsets-7`), else 0. Several copies of a partition are
    merged (`copies`). Raises StorageError if there is nothing to read, or segments are compressed;
    ConfigError for segments of several clusters.
    """
    return logs_of(segments_of(places, options))


def logs_of(look: Look) -> list[SegmentLog]:
    """Return the partitions that a scan found, by number."""
    return _logs(look.partitions)


def state_logs_of(look: Look) -> list[SegmentLog]:
    """Return the partitions of `__share_group_state` that a scan found, by number."""
    return _logs(look.state)


def _logs(partitions: Mapping[int, Chosen]) -> list[SegmentLog]:
    return [
        SegmentLog(number, kept.files, bad=[*kept.bad], stretches=kept.stretches)
        for number, kept in partitions.items()
    ]


def looks_like_segments(word: str) -> bool:
    """Return whether a word is an existing segment file, or a folder named like a partition of the topic."""
    if "://" in word:
        return word.endswith(".log") or _is_ours(Location.parse(word))
    path = Path(word)
    if path.is_file():
        return path.suffix == ".log"
    return path.is_dir() and _is_ours(path)


@dataclass(slots=True)
class _Below:
    """What lies at a place or below it."""

    segments: list[AnyFile] = field(default_factory=list)
    neighbours: list[RemoteFile] = field(default_factory=list)


def _remote(root: Location, options: StorageOptions) -> _Below:
    """Return what lies there; a listing is read as it arrives, and only what may be wanted of it is kept."""
    store = open_store(root, options)
    if root.path and "." in root.name:
        with suppress(StorageMissing):
            return _Below([_unpacked(RemoteFile.of(store.look(root), options))])
    below, kept, topics, seen = _Below(), list[AnyFile](), set[str](), False
    for entry in store.walk(root):
        seen = True
        name = entry.location.name
        if name in (TOPICS_FILE, _PARTITION_FILE):
            # One partition of a topic has its id as well as all of them.
            topic = str(entry.location.parent).rpartition("-")[0] if name == _PARTITION_FILE else str(entry)
            if topic not in topics:
                topics.add(topic)
                below.neighbours.append(RemoteFile.of(entry, options))
        elif may_matter(name):
            # Other topics may have any number of segments; of packed ones, one is enough to report it.
            folder = entry.location.parent
            ours = _is_ours(folder) or folder == root
            former = _of_former(entry.location.path.removeprefix(root.path).split("/"))
            matters = _wanted(file := RemoteFile.of(entry, options)) and not former
            if matters and (ours or is_packed(file) and not kept):
                kept.append(file)
    if not seen:
        raise StorageMissing(f"there is nothing at {root}", "check its name; kgroup reads what is below it")
    below.segments = _own(kept, root)
    return below


def _of_former(below: Sequence[str]) -> bool:
    """Return whether a file, by its path below a place, is of a log that a recorder set aside."""
    return any(part.startswith(FORMER) for part in below[:-1])


def _wanted(file: AnyFile) -> bool:
    return is_segment(file) or is_packed(file) or file.name.endswith(MANIFEST)


def _own(files: Iterable[AnyFile], folder: AnyFolder) -> list[AnyFile]:
    """Return the segments of both topics among a folder's files; StorageError for packed ones."""
    named = list(files)
    ours = [file for file in named if _is_ours(file.parent)]
    segments = [file for file in ours or named if is_segment(file) and (ours or file.parent == folder)]
    for file in named:
        # An archive next to segments may be anything; one instead of them is what was to be read.
        if not is_packed(file):
            continue
        inside = _is_ours(file.parent) or file.parent == folder or file.name.startswith(OFFSETS_TOPIC)
        if not segments or (is_packed_segment(file) and inside):
            raise refuse_packed(file)
    manifests = {str(file): file for file in ours if file.name.endswith(MANIFEST)}
    for file in segments:
        neighbour = manifests.get(str(file).removesuffix(".log") + MANIFEST)
        if neighbour is None:
            continue
        try:
            said = json.loads(neighbour.read_bytes())
            packed, secret = said.get("compression"), said.get("encryption")
        except (OSError, ValueError, AttributeError):
            continue
        if packed or secret:
            what = "encrypted" if secret else "compressed"
            hint = "copy the topic's segments from a broker, or record it with kgroup capture"
            raise StorageError(f"{file} was {what} by tiered storage, so it is not read", hint)
    return segments


def _is_ours(folder: AnyFolder) -> bool:
    """Return whether a folder is named for a partition of one of the topics that are read."""
    return any(partition_in(folder, topic) is not None for topic in (OFFSETS_TOPIC, SHARE_STATE_TOPIC))


def _unpacked(file: AnyFile) -> AnyFile:
    if is_packed(file):
        raise refuse_packed(file)
    return file


def topic_names_near(
    places: Iterable[Path | Location], neighbours: Sequence[RemoteFile] = ()
) -> dict[bytes, str]:
    """Return topic names by id, from the folders around the segments.

    From `topics.json` (a capture has it) and from Kafka's `partition.metadata` in the folders of the same
    data directory, which ours writes too. Unreadable files are skipped: ids are shown instead. At a URL it is
    what a scan found there (`Look.neighbours`).
    """
    names: dict[bytes, str] = {}
    folders = set()
    for location in places:
        if isinstance(location, Location) and not location.is_local:
            continue
        at = (location if isinstance(location, Path) else location.local).resolve()
        folders |= {at, at.parent, at.parent.parent} if at.is_dir() else {at.parent, at.parent.parent}
    for folder in sorted(folders):
        names |= _topics_file(_text(folder / TOPICS_FILE))
        for metadata in folder.glob(f"*-*/{_PARTITION_FILE}"):
            names |= _partition_metadata(metadata.parent.name, _text(metadata))
    if neighbours:
        with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
            for file, text in zip(neighbours, pool.map(_text, neighbours), strict=True):
                named = file.name == TOPICS_FILE
                names |= _topics_file(text) if named else _partition_metadata(file.parent.name, text)
    return names


def _text(file: AnyFile) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, ValueError, StorageError):
        return ""


def _topics_file(text: str) -> dict[bytes, str]:
    try:
        return {uuid_bytes(topic_id): name for name, topic_id in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        return {}


def _partition_metadata(folder: str, text: str) -> dict[bytes, str]:
    try:
        values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        return {uuid_bytes(values["topic_id"]): folder.rpartition("-")[0]}
    except (ValueError, KeyError):
        return {}


def stored_topics(folder: Folder) -> dict[bytes, str]:
    """Return the topic ids that are kept in a folder of segments; none where there is no such file."""
    return _topics_file((read_small(folder, TOPICS_FILE) or b"").decode("utf-8", "replace"))


def write_topics_file(folder: Folder, names: Mapping[bytes, str]) -> None:
    """Keep topic ids in a folder of segments, beside those there: a replay without a broker names topics.

    StorageError if that fails, and the file is as it was.
    """
    every = sorted({**stored_topics(folder), **names}.items(), key=lambda item: item[1])
    ids = {name: uuid_text(topic_id) for topic_id, name in every}
    folder.write(TOPICS_FILE, (json.dumps(ids, indent=2) + "\n").encode())
