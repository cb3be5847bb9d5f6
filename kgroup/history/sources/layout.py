"""Files of a backup by their names: which are segments, of which partition, and what else lies next to them.

__consumer_offsets-7/00000000000000000023.log                     a broker's data folder, a capture
BROKER/__consumer_offsets-7/00000000000000000023.log              copies of several brokers
__consumer_offsets-TOPICID/7/00000000000000000023-SEGMENTID.log   as Aiven's tiered storage names objects
__consumer_offsets-7-TOPICID/00000000000000000023-SEGMENTID.log   as Kafka's own LocalTieredStorage does
"""

import re
from pathlib import Path
from typing import TypeAlias

from kgroup.domain import OFFSETS_TOPIC, SHARE_STATE_TOPIC
from kgroup.errors import StorageError, StorageMissing
from kgroup.storage.files import RemoteFile
from kgroup.storage.location import Location

AnyFile: TypeAlias = Path | RemoteFile
AnyFolder: TypeAlias = Path | Location
_ID = r"[\w-]{22}"
_SEGMENT = re.compile(rf"\d{{20}}(-{_ID})?\.log")
_BASE = re.compile(rf"(\d+)(-{_ID})?\.log")
_TOPICS = (OFFSETS_TOPIC, SHARE_STATE_TOPIC)
_PARTITION = {topic: re.compile(rf"{topic}-(\d+)(-{_ID})?") for topic in _TOPICS}
_TIERED = {topic: re.compile(rf"{topic}-{_ID}") for topic in _TOPICS}
_PACKED = re.compile(r"(.+)\.(gz|tgz|zst|zstd|bz2|xz|lz4|lzma|sz|snappy|br|zip|7z|rar|tar)", re.IGNORECASE)
FORMER = "former-"
"""Begins the name of a folder with logs that the cluster replaced: read only where it is named itself."""
OBSERVED = "observed"
"""The folder in which a recorder keeps what only it saw."""
GAPS = "gaps.json"
"""The file in which a recorder keeps what the log next to it lacks."""
MANIFEST = ".rsm-manifest"
"""Ends the name of a file of Aiven's tiered storage next to a segment: whether that is compressed."""


def may_matter(name: str) -> bool:
    """Return whether this name can be a segment, a packed one or a manifest: called for every object."""
    return name.endswith((".log", MANIFEST)) or _PACKED.fullmatch(name) is not None


def is_segment(file: AnyFile) -> bool:
    """Return whether a file is named as Kafka and tiered storage name segments."""
    return _SEGMENT.fullmatch(file.name) is not None


def base_offset(file: AnyFile) -> int | None:
    """Return a segment's first offset from its name; None for a file of another name."""
    named = _BASE.fullmatch(file.name)
    return int(named[1]) if named else None


def partition_in(folder: AnyFolder, topic: str = OFFSETS_TOPIC) -> int | None:
    """Return the partition of a coordinator's topic in a folder's name; None for any other folder."""
    if named := _PARTITION[topic].fullmatch(folder.name):
        return int(named[1])
    if folder.name.isdecimal() and _TIERED[topic].fullmatch(folder.parent.name):
        return int(folder.name)
    return None


def folder_of(file: AnyFile) -> AnyFolder:
    """Return the folder a file is in, with a local one's real name."""
    return file.resolve().parent if isinstance(file, Path) else file.parent


def is_packed(file: AnyFile) -> bool:
    """Return whether a file is compressed, or an archive, by its name."""
    return _PACKED.fullmatch(file.name) is not None


def is_packed_segment(file: AnyFile) -> bool:
    """Return whether a file is a compressed segment, or an archive of a partition's folder."""
    named = _PACKED.fullmatch(file.name)
    inner = named[1].removesuffix(".tar") if named else ""
    return bool(_SEGMENT.fullmatch(inner) or any(name.fullmatch(inner) for name in _PARTITION.values()))


def refuse_packed(file: AnyFile) -> StorageError:
    """Return the error for one: nothing in it can be read in ranges, or at all."""
    how = "unpack it first"
    for end, command in _UNPACK:
        if file.name.lower().endswith(end):
            how = f"unpack it first: {command} {file.name}"
            break
    return StorageError(f"{file} is compressed, or an archive, which is not read", how)


_UNPACK = (
    (".tar.gz", "tar -xzf"),
    (".tgz", "tar -xzf"),
    (".tar.zst", "tar --zstd -xf"),
    (".tar", "tar -xf"),
    (".gz", "gunzip"),
    (".zst", "unzstd"),
    (".zstd", "unzstd"),
    (".bz2", "bunzip2"),
    (".xz", "unxz"),
    (".lz4", "unlz4"),
    (".zip", "unzip"),
)


def size_of(file: AnyFile) -> int:
    """Return the bytes in a file; OSError for a local one that cannot be accessed."""
    return file.stat().st_size if isinstance(file, Path) else file.size


def text_of(folder: AnyFolder, name: str, neighbour: AnyFile) -> str | None:
    """Return a small text in a folder, read like its `neighbour`; None if it is missing or not text."""
    try:
        if isinstance(folder, Path):
            return (folder / name).read_text(encoding="utf-8")
        assert isinstance(neighbour, RemoteFile)
        return RemoteFile.at(folder / name, neighbour.options).read_bytes().decode()
    except (OSError, ValueError, StorageMissing):
        return None
