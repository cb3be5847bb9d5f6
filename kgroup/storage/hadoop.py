"""HDFS by hdfs-native: Hadoop's protocol itself, without a JVM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from kgroup.errors import ConfigError, StorageMissing
from kgroup.storage.failures import changed, failure
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions
from kgroup.storage.store import Found
from kgroup.storage.waiting import within

if TYPE_CHECKING:
    from hdfs_native import Client
    from hdfs_native._internal import FileStatus

T = TypeVar("T")


_THERE = ("FileAlreadyExistsException", "AlreadyBeingCreatedException")


class Hadoop:
    """A name node, or the one that Hadoop's configuration names; see `Store`."""

    def __init__(self, location: Location, options: StorageOptions) -> None:
        self._options = options
        self._root = location
        self._client = self._call(location, lambda: _opened(location, options))

    def walk(self, folder: Location) -> Iterator[Found]:
        def begun() -> Iterator[FileStatus] | None:
            # A file has no files below it, and the listing would give the file itself.
            if not self._client.get_file_info(_path(folder)).isdir:
                return None
            return iter(self._client.list_status(_path(folder), recursive=True))

        try:
            statuses = self._call(folder, begun)
        except StorageMissing:
            return
        if statuses is None:
            return
        following = statuses
        while status := self._call(folder, lambda: next(following, None)):
            if not status.isdir:
                yield self._found(status)

    def look(self, location: Location) -> Found:
        status = self._call(location, lambda: self._client.get_file_info(_path(location)))
        if status.isdir:
            raise StorageMissing(f"{location} is a folder, not a file", "name a file in it")
        return self._found(status)

    def read(self, entry: Found, start: int, end: int) -> bytes:
        end = min(end, entry.size)
        if start >= end:
            return b""
        at, path = entry.location, _path(entry.location)
        data = self._call(at, lambda: self._client.read(path).read_range(start, end - start))
        # Checked after the read: a file that was replaced before or meanwhile is another one now.
        if self.look(at).version != entry.version:
            raise changed(at)
        return data

    def write(self, location: Location, data: bytes) -> Found:
        from hdfs_native import WriteOptions

        path = _path(location)
        temporary = f"{path}.{os.getpid()}.tmp"

        def put() -> None:
            options = WriteOptions(overwrite=True, create_parent=True)
            with self._client.create(temporary, options) as file:
                file.write(data)
            self._client.rename(temporary, path, overwrite=True)

        self._call(location, put)
        return self.look(location)

    def create(self, location: Location, data: bytes) -> bool:
        from hdfs_native import WriteOptions

        def put() -> bool:
            options = WriteOptions(overwrite=False, create_parent=True)
            try:
                with self._client.create(_path(location), options) as file:
                    file.write(data)
            except Exception as error:
                if isinstance(error, FileExistsError) or any(phrase in str(error) for phrase in _THERE):
                    return False
                raise
            return True

        return self._call(location, put)

    def delete(self, location: Location) -> None:
        try:
            self._call(location, lambda: self._client.delete(_path(location)))
        except StorageMissing:
            return

    def _found(self, status: FileStatus) -> Found:
        path = status.path.partition("://")[2].partition("/")[2] if "://" in status.path else status.path
        at = Location(self._root.scheme, self._root.host, path.strip("/"))
        modified_ms = status.modification_time
        return Found(at, status.length, f"{modified_ms}/{status.length}", modified_ms)

    def _call(self, at: Location, call: Callable[[], T]) -> T:
        try:
            return within(self._options.timeout_s, call)
        except ConfigError:
            raise
        except Exception as error:
            raise failure(error, at, self._options) from None


def _path(location: Location) -> str:
    return f"/{location.path}"


def _opened(location: Location, options: StorageOptions) -> Client:
    from hdfs_native import Client

    given = options.for_kind(location.kind)
    if user := given.get("user"):
        os.environ["HADOOP_USER_NAME"] = user  # the library asks nothing else
    node = f"hdfs://{location.host}" if location.host else None
    try:
        return Client(node, options.hadoop(), given.get("config_dir"))
    except RuntimeError as error:
        hint = "give NAMENODE:PORT, or the configuration by --storage-option HADOOP_CONF_DIR=…"
        raise ConfigError(f"{location} names no HDFS: {error}", hint) from None
