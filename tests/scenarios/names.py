"""Between the names in a table and those on the wire: members, groups, topics, partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError
from kgroup.protocol.subscription import Assignment


class Names:
    """Member ids the coordinator makes are m1, m2 … in order of first appearance.

    Groups and topics get a prefix on hosts that serve many scenarios; `topic_ids` and `producers`
    (id and epoch) hold what the host said.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.topic_ids: dict[str, bytes] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self._ids: dict[str, str] = {}
        self._symbols: dict[str, str] = {}

    def member_id(self, name: str) -> str:
        """The id behind a name; a name nobody has yet is an id itself."""
        return self._ids.get(name, name)

    def member(self, member_id: str) -> str:
        """The name of an id, a new one for an id not seen before."""
        if not member_id or member_id in self._ids or not _generated(member_id):
            return member_id
        name = self._symbols.get(member_id)
        if name is None:
            name = f"m{len(self._symbols) + 1}"
            self._symbols[member_id] = name
            self._ids[name] = member_id
        return name

    def knows(self, name: str) -> bool:
        return name in self._ids

    def members(self, member_ids: Iterable[str]) -> str:
        """Names in order, with commas between."""
        return ",".join(sorted(map(self.member, member_ids), key=by_number))

    def group_id(self, name: str) -> str:
        return self.prefix + name if name else name

    def group(self, group_id: str) -> str:
        return group_id.removeprefix(self.prefix)

    def topic(self, name: str) -> str:
        """A topic's name on the wire."""
        return self.prefix + name

    def topic_symbol(self, name: str) -> str:
        return name.removeprefix(self.prefix)

    def topic_id(self, name: str) -> bytes:
        """A topic's id; for a name without a topic, an id that no topic has."""
        return self.topic_ids.setdefault(name, name.encode().rjust(16, b"?"))

    def topic_of_id(self, topic_id: bytes) -> str:
        return next((name for name, known in self.topic_ids.items() if known == topic_id), topic_id.hex())


def by_number(name: str) -> tuple[str, int]:
    """Orders m2 before m10."""
    found = re.fullmatch(r"(\D*)(\d*)", name)
    return (found[1], int(found[2] or 0)) if found else (name, 0)


def _generated(member_id: str) -> bool:
    return re.search(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", member_id) is not None or (
        re.fullmatch(r"[\w-]{22}", member_id) is not None
    )


def ranges(numbers: Iterable[int]) -> str:
    """0,1,2,5 as 0-2,5."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def numbers_in(text: str) -> list[int]:
    """The other way round."""
    found: list[int] = []
    for part in text.split(","):
        if part:
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    return found


def partitions_text(partitions: Iterable[tuple[str, Iterable[int]]]) -> str:
    """Topics with their partitions: t1:0-2/t2:1."""
    return "/".join(f"{topic}:{ranges(numbers)}" for topic, numbers in sorted(partitions))


def partitions_in(text: str) -> list[tuple[str, list[int]]]:
    """The other way round; a topic without a colon has no partitions."""
    parts = (part.partition(":") for part in text.split("/") if part)
    return [(topic, numbers_in(numbers)) for topic, _, numbers in parts]


def assignment_bytes(text: str, names: Names) -> bytes:
    """What a leader sends for a member: t1:0-2 in ConsumerProtocol encoding, anything else as it stands."""
    if not re.match(r"[\w.-]+:", text):
        return text.encode()
    return Assignment(
        tuple(TopicPartition(names.topic(topic), n) for topic, ns in partitions_in(text) for n in ns)
    ).encode()


def assignment_text(data: bytes, names: Names) -> str:
    try:
        decoded = Assignment.decode(data)
    except DecodeError:
        return data.decode(errors="replace")
    found: dict[str, list[int]] = {}
    for partition in decoded.partitions:
        found.setdefault(names.topic_symbol(partition.topic), []).append(partition.partition)
    return partitions_text(found.items()) or "none"
