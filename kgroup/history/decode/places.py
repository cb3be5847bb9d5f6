"""Where each commit of a log lies, as plain numbers: millions of commits without an object for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i32_le, write_i64_le

from kgroup.history.log_items import RawRecord

if TYPE_CHECKING:
    from mypy_extensions import i64

ROW: Final = (
    ("key", "<i8"),
    ("size", "<i8"),
    ("offset", "<i8"),
    ("ts", "<i8"),
    ("producer", "<i8"),
    ("value", "<i8"),
)
"""A commit: the number of its key, the size of its value (-1: a tombstone), its log offset and time (ms), the
producer of its transaction (else -1), and where in the chunk its value begins. As fields of a numpy type."""
KEY: Final = (("group", "<i4"), ("topic", "<i4"), ("partition", "<i4"), ("size", "<i4"))
"""A key by its number: the numbers of its group and its topic, the partition, and its bytes."""


class Places:
    """What a decoder found in the chunk that it was fed last, in log order.

    `commits` are rows of `ROW`, of every commit whose key decodes; `keys` rows of `KEY`, `groups` and
    `topics` names by number, of all chunks. Values in a compressed batch lie in `bodies`, whose positions
    follow the chunk. `others` are the records of any other type.
    """

    def __init__(self) -> None:
        self.commits = BytesWriter()
        self.keys = BytesWriter()
        self.groups: dict[str, int] = {}
        self.topics: dict[str, int] = {}
        self.bodies: list[bytes] = []
        self.others: list[RawRecord] = []
        self._end: i64 = 0
        self.forget()

    def forget(self) -> None:
        """Forget all keys; numbering restarts at 1."""
        self.keys.truncate(0)
        self.groups, self.topics = {}, {}
        for _ in KEY:
            write_i32_le(self.keys, -1)

    def begin(self, size: int) -> None:
        """Begin a chunk of `size` bytes, and drop what was found in the one before."""
        self.commits.truncate(0)
        self.bodies, self.others = [], []
        self._end = size

    def body(self, data: bytes) -> int:
        """Keep the records of a compressed batch; return their position."""
        start = self._end
        self.bodies.append(data)
        self._end = start + len(data)
        return start

    def key(self, group: str, topic: str, partition: int, size: int) -> None:
        """Add the next key."""
        keys = self.keys
        write_i32_le(keys, self.groups.setdefault(group, len(self.groups)))
        write_i32_le(keys, self.topics.setdefault(topic, len(self.topics)))
        write_i32_le(keys, partition)
        write_i32_le(keys, size)

    def commit(self, key: i64, size: i64, offset: i64, ts: i64, producer: i64, value: i64) -> None:
        """Add a commit; the fields are those of `ROW`."""
        commits = self.commits
        write_i64_le(commits, key)
        write_i64_le(commits, size)
        write_i64_le(commits, offset)
        write_i64_le(commits, ts)
        write_i64_le(commits, producer)
        write_i64_le(commits, value)
