"""Requests of plain content whose structure is not plain: big arrays, products, chains, stars, repeats.

The shapes come from the declared messages. For each request an array, or two, takes all the items; each
field follows one rule for the whole request: a constant, the item's place, the next place, the place from
the end. So a topology becomes a chain where its sinks follow the place and its sources the next one, and a
star where all name one topic.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kgroup.protocol import registry
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.headers import encode_request
from kgroup.protocol.shapes import Shape, Slot, slots_of
from tests.hostile.requests import BATCH

MOST_ITEMS = 60_000
"""Nearly as many as a request may have (`REQUEST_ITEMS`)."""
MOST_BYTES = 7 << 20
TOPICS, BIG, BIG_PARTITIONS = 200, "big", 10_000
"""The world they are about: topics s0, s1, … of one partition each, and one with many."""

Rule: TypeAlias = Callable[[int, int], int]
"""From an item's place and the number of items to a number."""
RULES: dict[str, Rule] = {
    "same": lambda place, count: 0,
    "place": lambda place, count: place,
    "next": lambda place, count: place + 1,
    "from the end": lambda place, count: count - place,
    "after the end": lambda place, count: count - place + 1,
    "half": lambda place, count: place // 2,
    "existing": lambda place, count: place % TOPICS,
}
PLAIN: dict[str, tuple[Any, ...]] = {
    "member_epoch": (0, 0, 1, -1),
    "generation_id": (-1, 1),
    "generation_id_or_member_epoch": (-1, 1),
    "session_timeout_ms": (10_000,),
    "rebalance_timeout_ms": (1000,),
    "transaction_timeout_ms": (1000,),
    "timeout_ms": (1000,),
    "max_wait_ms": (0, 0, 1),
    "min_bytes": (0, 1),
    "max_bytes": (1 << 20,),
    "max_records": (100,),
    "batch_size": (100,),
    "partition_max_bytes": (1 << 20,),
    "num_partitions": (1, 1, -1, 10_000),
    "count": (2, 10_000),
    "replication_factor": (1, -1),
    "replica_id": (-1,),
    "session_epoch": (-1, 0),
    "share_session_epoch": (0, 0, 1, -1),
    "current_leader_epoch": (-1, 0),
    "leader_epoch": (0, -1),
    "timestamp": (-1, -2, -3, 0),
    "acks": (1, -1, 0),
    "response_partition_limit": (2000, 1 << 30),
    "resource_type": (2, 4, 32),
    "resource_type_filter": (1, 2),
    "pattern_type_filter": (1, 3),
    "resource_pattern_type": (3, 4),
    "permission_type": (3, 1),
    "operation": (3, 1),
    "config_operation": (0, 1, 2, 3),
    "election_type": (0, 1),
    "key_type": (0, 1, 2),
    "acknowledge_types": (1, 0, 2),
    "share_acquire_mode": (0, 1),
    "isolation_level": (0, 1),
    "retention_time_ms": (-1,),
    "group_id": ("g", "g", "h"),
    "member_id": ("", "m"),
    "protocol_type": ("consumer",),
    "transactional_id": ("t",),
    "rack_id": (None, "r"),
    "server_assignor": (None, "uniform", "range"),
    "process_id": ("p",),
    "replica_directory_id": (bytes(16),),
    "validate_only": (False, True),
    "subscribed_topic_regex": (None, "s.*"),
}
"""What gets past the checks of a field's value, by name: any other number is 0, any other name a topic's."""


@dataclass(frozen=True)
class Case:
    """One structure: which arrays of which API take how many items, and by which rules."""

    key: int
    version: int
    big: tuple[str, ...]
    items: int
    seed: int
    kept: tuple[tuple[str, Any], ...] = ()
    """What is drawn for fields, of an earlier case; all others are drawn by the seed."""

    def __str__(self) -> str:
        arrays = " × ".join(self.big) or "no array"
        name = registry.name_of(self.key)
        return f"{name} v{self.version}: {self.items} items in {arrays} (seed {self.seed})"


def arrays_of(key: int, version: int) -> list[str]:
    """Return the paths of a request's arrays, such as "topics.partitions"."""

    def walk(cls: type[Struct], before: str) -> Iterator[str]:
        for slot in slots_of(cls):
            path, shape = f"{before}{slot.name}", slot.shape
            if not _is_sent(slot, version, flexible):
                continue
            if shape.kind == "array":
                yield path
                assert shape.item is not None
                shape = shape.item
            if shape.struct is not None:
                yield from walk(shape.struct, f"{path}.")

    cls = registry.request_class(key)
    flexible = version >= cls.FLEXIBLE
    return list(walk(cls, ""))


def drawn(chance: random.Random, items: int | None = None) -> Case:
    """Return a case by chance: mostly a small one, now and then as big as the broker takes them."""
    key, arrays = chance.choices(list(ARRAYS.items()), [len(found) for found in ARRAYS.values()])[0]
    version = chance.choice(registry.request_class(key).VERSIONS[-3:])
    arrays = arrays_of(key, version) or arrays
    big = tuple(sorted(chance.sample(arrays, min(chance.choice((1, 1, 2)), len(arrays))), key=arrays.index))
    most = chance.choices((60, 1000, 10_000, MOST_ITEMS), (900, 90, 9, 1))[0]
    return Case(key, version, big, items or chance.randint(1, most), chance.randrange(1 << 31))


def changed(case: Case, chance: random.Random, items: int | None = None) -> Case:
    """Return a case with some of its fields drawn again: what cost most is what the next ones grow from."""
    making = _Making(case)
    making.request()
    kept = {path: value for path, value in making.rules.items() if chance.random() > 0.15}
    return replace(case, items=items or case.items, seed=chance.randrange(1 << 31), kept=tuple(kept.items()))


def request(case: Case) -> Message:
    """Return the request of a case; the same case makes the same one."""
    return _Making(case).request()


def frame(case: Case) -> bytes:
    """Return it as it goes over the wire; with fewer items where the broker would not read it."""
    making = _Making(case)
    whole = encode_request(making.request(), case.version, 1, "structure")
    if len(whole) <= MOST_BYTES and making.items <= MOST_ITEMS:
        return whole
    return frame(replace(case, items=case.items // 2))


def _is_sent(slot: Slot, version: int, flexible: bool) -> bool:
    return slot.since <= version <= slot.until and (slot.tag is None or flexible)


ARRAYS = {
    key: arrays
    for key in registry.KAFKA_APIS + registry.PRIVATE_APIS
    if (arrays := arrays_of(key, registry.request_class(key).VERSIONS[-1]))
}
"""The arrays of every API that has some, in its newest version."""


class _Making:
    """One request in the making."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._flexible = case.version >= registry.request_class(case.key).FLEXIBLE
        self._chance = random.Random(case.seed)
        self.rules: dict[str, Any] = dict(case.kept)
        self.items = 0
        self._width = self._chance.choice([0] * 7 + [100])
        self._places: dict[str, int] = {}
        # Arrays one inside the other share the items as factors, others as parts.
        nested = [p for p in case.big if any(p.startswith(f"{other}.") for other in case.big)]
        each = round(case.items ** (1 / 2)) if nested else case.items // max(len(case.big), 1)
        self._counts = {path: max(each, 1) if len(case.big) > 1 else max(case.items, 1) for path in case.big}

    def request(self) -> Message:
        made = self.struct(registry.request_class(self._case.key), "")
        assert isinstance(made, Message)
        return made

    def struct(self, cls: type[Struct], before: str) -> Struct:
        given = {}
        for slot in slots_of(cls):
            path = f"{before}{slot.name}"
            if not _is_sent(slot, self._case.version, self._flexible):
                given[slot.name] = slot.default
            elif slot.shape.nullable and self._is_left_out(path, slot):
                given[slot.name] = None
            else:
                given[slot.name] = self._value(path, slot.name, slot.shape)
        return cls(**given)

    def _is_left_out(self, path: str, slot: Slot) -> bool:
        if any(big == path or big.startswith(f"{path}.") for big in self._case.big):
            return False
        if self._case.version < slot.nullable_since or slot.name in PLAIN:
            return False
        return bool(self._rule(f"{path}?", (True, False)))

    def _rule(self, path: str, choices: tuple[Any, ...]) -> Any:
        """Return what was drawn for a field, once for the whole request."""
        if path not in self.rules:
            self.rules[path] = self._chance.choice(choices)
        return self.rules[path]

    def _value(self, path: str, name: str, shape: Shape) -> Any:
        if shape.kind == "array":
            assert shape.item is not None
            leads_on = any(big.startswith(f"{path}.") for big in self._case.big)
            count = self._counts.get(path, 1 if leads_on else self._few(path))
            self.items += count
            return tuple(self._item(path, name, shape.item, place, count) for place in range(count))
        if shape.struct is not None:
            return self.struct(shape.struct, f"{path}.")
        return self._leaf(path, name, shape)

    def _few(self, path: str) -> int:
        """Return how many items an array has that is not big: one odd item may be what all others lead to."""
        first = not any(place for big, place in self._places.items() if self._counts.get(big, 1) > 1)
        return int(
            {"none": False, "one": True, "first": first, "others": not first}[
                self._rule(f"{path}#", ("none", "one", "first", "others"))
            ]
        )

    def _item(self, path: str, name: str, shape: Shape, place: int, count: int) -> Any:
        before = self._places
        self._places = {**before, path: place}
        try:
            return self._value(path, name, shape) if shape.kind == "struct" else self._leaf(path, name, shape)
        finally:
            self._places = before

    def _leaf(self, path: str, name: str, shape: Shape) -> Any:
        if name in PLAIN and path not in self._counts and self._rule(f"{path}!", (True,) * 4 + (False,)):
            plain = self._rule(f"{path}=", PLAIN[name])
            if plain is not None or shape.nullable:
                return plain
        if shape.kind == "fixed" and path not in self._counts and self._rule(f"{path}!", (True, False)):
            return False if shape.code == "?" else 0
        number = self._number(path)
        if shape.kind == "string":
            if self._rule(f"{path}@", (False,) * 9 + (True,)):
                return BIG
            return f"s{number}".ljust(self._width, "-")
        if shape.kind == "uuid":
            return number.to_bytes(16, "big")
        if shape.kind == "bytes":
            return BATCH
        if shape.code == "?":
            return bool(number & 1)
        if shape.code == "d":
            return float(number)
        bits = 8 * struct.calcsize(">" + shape.code) - shape.code.islower()
        return number & ((1 << bits) - 1)

    def _number(self, path: str) -> int:
        """Return the field's number at the innermost big array that it stands in, by its rule."""
        rule = RULES[self._rule(path, tuple(RULES))]
        around = [big for big in self._places if path == big or path.startswith(f"{big}.")]
        counted = [big for big in around if self._counts.get(big, 1) > 1]
        if not counted:
            return rule(0, 1)
        at = self._rule(f"{path}^", tuple(counted))
        return rule(self._places[at], self._counts[at])
