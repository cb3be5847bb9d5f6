"""A data folder with one owner at a time: its process, and the cluster it belongs to."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kgroup.domain import uuid_text
from kgroup.errors import StorageError
from kgroup.log.files import CATALOG, replace_file
from kgroup.portable import BINARY, lock, read_at

LAYOUT_VERSION = 2
LOCK_FILE = ".lock"
META_FILE = "meta.properties"

# `owner_of` holds the lock for an instant to see whether it is free; an opener outwaits that.
_TRIES = 5
_PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that owns a data folder.

    `bootstrap` is its `host:port`, empty while it starts; `metrics` that of its metrics endpoint, empty if it
    has none.
    """

    pid: int
    command: str
    bootstrap: str = ""
    metrics: str = ""

    def __str__(self) -> str:
        at = f", serving at {self.bootstrap}" if self.bootstrap else ""
        return f"process {self.pid} ({self.command}{at})"


class DataDirectory:
    """The data folder `path`, created if missing and owned until `close` or the process's end.

    A new folder gets `cluster_id`, or a random one; an existing one keeps its own. Raise StorageError if
    another process owns it (naming that one), if it belongs to another cluster or broker than asked for, if
    it no longer says which, or if its layout is newer than this version of kgroup. `created` is whether the
    folder became one of kgroup's just now. The first `node_id` that is asked for stays, too: the id of its
    first broker; before, that is 0.
    """

    def __init__(
        self,
        path: Path,
        *,
        command: str,
        bootstrap: str = "",
        cluster_id: str | None = None,
        node_id: int | None = None,
    ) -> None:
        self.path = path
        self.created = False
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | BINARY, 0o644)
        except OSError as error:
            raise _os_error(path, error) from None
        try:
            self._acquire()
            self._owner = Owner(os.getpid(), command, bootstrap)
            self._write_owner()
            self.cluster_id, self.node_id = self._identify(cluster_id, node_id)
        except OSError as error:
            os.close(self._lock)
            raise _os_error(path, error) from None
        except BaseException:
            os.close(self._lock)
            raise

    def announce(self, bootstrap: str, metrics: str = "") -> None:
        """Record for `owner_of` where this process now listens."""
        self._owner = replace(self._owner, bootstrap=bootstrap, metrics=metrics)
        self._write_owner()

    def close(self) -> None:
        """Release the folder; safe to call twice."""
        if self._lock >= 0:
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> DataDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _acquire(self) -> None:
        for attempt in range(_TRIES):
            try:
                lock(self._lock)
                return
            except BlockingIOError:
                if attempt < _TRIES - 1:
                    time.sleep(_PAUSE_SECONDS)
        holder = _read_owner(self._lock)
        raise StorageError(
            f"{self.path} is in use by {holder or 'another process'}",
            hint="stop that process, talk to it instead, or choose another data folder",
        )

    def _write_owner(self) -> None:
        text = json.dumps(asdict(self._owner)).encode() + b"\n"
        os.lseek(self._lock, 0, os.SEEK_SET)
        os.write(self._lock, text)
        os.ftruncate(self._lock, len(text))

    def _identify(self, requested: str | None, node_id: int | None) -> tuple[str, int]:
        path = self.path / META_FILE
        if not path.exists():
            if (self.path / CATALOG).exists():
                raise StorageError(
                    f"{path} is missing: it says which cluster the folder belongs to",
                    hint="restore it from a backup; or write it again with the lines"
                    f" layout.version={LAYOUT_VERSION} and"
                    f" cluster.id=…, the id being that in {CATALOG}",
                )
            self.created = True
            cluster_id = requested or uuid_text(os.urandom(16))
            self._write_meta(cluster_id, node_id)
            return cluster_id, node_id or 0
        lines = path.read_bytes().decode("utf-8", "replace").splitlines()
        pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
        properties = {key.strip(): value.strip() for key, _, value in pairs}
        try:
            version, stored = int(properties["layout.version"]), properties["cluster.id"]
            number = int(properties["node.id"]) if "node.id" in properties else None
        except (KeyError, ValueError):
            raise StorageError(
                f"{path} lacks a layout.version or cluster.id, or has a node.id that is none",
                hint="this is not a data folder of kgroup",
            ) from None
        if version > LAYOUT_VERSION:
            raise StorageError(
                f"{self.path} has layout version {version}, this kgroup knows up to {LAYOUT_VERSION}",
                hint="open it with the version of kgroup that wrote it, or a newer one",
            )
        if version < LAYOUT_VERSION:
            raise StorageError(
                f"{self.path} has layout version {version}, this kgroup reads {LAYOUT_VERSION}",
                hint=f"open it with the kgroup that wrote it; or delete {path}: the partitions are then taken"
                " over, without the ids and settings of their topics and the settings of groups",
            )
        if requested is not None and requested != stored:
            raise StorageError(
                f"{self.path} belongs to cluster {stored}, not {requested}",
                hint="choose another data folder, or leave the cluster id out",
            )
        if number is None and node_id is not None:
            self._write_meta(stored, node_id)
            number = node_id
        elif node_id is not None and node_id != number:
            raise StorageError(
                f"{self.path} belongs to broker {number}, not {node_id}",
                hint="leave node.id out, or choose another data folder",
            )
        return stored, number or 0

    def _write_meta(self, cluster_id: str, node_id: int | None) -> None:
        text = f"layout.version={LAYOUT_VERSION}\ncluster.id={cluster_id}\n"
        if node_id is not None:
            text += f"node.id={node_id}\n"
        replace_file(self.path / META_FILE, text)


def holds_cluster(path: Path) -> bool:
    """Return whether the folder is that of a cluster, a damaged one too; OSError if unreadable."""
    return not {META_FILE, CATALOG}.isdisjoint(os.listdir(path))


def owner_of(path: Path) -> Owner | None:
    """Return the process that owns the data folder now, None if none does or the folder does not exist.

    Its `pid` is 0 if the owner has not recorded it.
    """
    try:
        file = os.open(path / LOCK_FILE, os.O_RDONLY | BINARY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _os_error(path, error) from None
    try:
        lock(file, shared=True)
    except BlockingIOError:
        return _read_owner(file) or Owner(0, "starting or unknown")
    finally:
        os.close(file)
    return None


def _read_owner(file: int) -> Owner | None:
    try:
        owner = json.loads(read_at(file, 65536, 0))
        metrics = str(owner.get("metrics", ""))
        return Owner(int(owner["pid"]), str(owner["command"]), str(owner["bootstrap"]), metrics)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _os_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"data folder {path} cannot be used: {error.strerror}",
        hint="check that the path is a folder this user may write to, with space left",
    )
