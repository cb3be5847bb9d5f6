"""The store of a location, opened once in a process."""

from functools import lru_cache

from kgroup.extras import require_extra
from kgroup.storage.location import HDFS, Location
from kgroup.storage.objects import Objects
from kgroup.storage.options import StorageOptions
from kgroup.storage.store import Store


def open_store(location: Location, options: StorageOptions) -> Store:
    """Return the store of a location that is not on this machine.

    ConfigError if the extra for it is missing or options contradict each other; StorageDenied without
    credentials.
    """
    return _opened(location.scheme, location.host, tuple(sorted(options.values.items())), options.timeout_s)


@lru_cache(maxsize=16)
def _opened(scheme: str, host: str, values: tuple[tuple[str, str], ...], timeout_s: float) -> Store:
    root, options = Location(scheme, host, ""), StorageOptions(dict(values), timeout_s)
    library = "hdfs_native" if root.kind == HDFS else "obstore"
    require_extra("storage", f"{scheme}://", library)
    if root.kind == HDFS:
        from kgroup.storage.hadoop import Hadoop

        return Hadoop(root, options)

    return Objects(root, options)
