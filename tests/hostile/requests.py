"""Requests of every API and version, field by field as declared, with the values nobody expects."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import Any

from kgroup.protocol import registry
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.headers import encode_request
from kgroup.protocol.shapes import Shape, slots_of

NAMES = ("", "hostile", "hostile-2", "hostile.2", "no-such", "x" * 249, "x" * 250, "é漢😀", ".", "a b", "\0")
"""Of topics, groups, members and all else: a small pool, so that they meet; never a bystander's."""
LONG = 32_767
COUNTS = (0, 0, 1, 1, 1, 2, 3, 20)
BATCH = encode_batch([LogRecord(b"k", b"v", timestamp_ms=1)] * 3)


def every() -> list[tuple[int, int]]:
    """API key and version of all that could be served, ours and those that are not."""
    keys = registry.KAFKA_APIS + registry.PRIVATE_APIS
    return [(key, version) for key in keys for version in registry.request_class(key).VERSIONS]


class Maker:
    """Makes requests from chance; the same seed makes the same ones."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._left = 0
        self._repeated = False

    def request(self, key: int, version: int) -> Message:
        """A request whose every field may hold anything its type can."""
        self._left = 400  # structs and items; a request has to end
        self._repeated = False
        cls = registry.request_class(key)
        made = self._struct(cls, version, version >= cls.FLEXIBLE)
        assert isinstance(made, Message)
        return made

    def bent(self, message: Message, version: int) -> Message:
        """The request with some of its numbers at their bounds, and some of what may be absent left out."""
        bent = self._bent(message, version, version >= message.FLEXIBLE)
        assert isinstance(bent, Message)
        return bent

    def _bent(self, struct: Struct, version: int, flexible: bool) -> Struct:
        chance, given = self._chance, {}
        for slot in slots_of(type(struct)):
            old = getattr(struct, slot.name)
            if not slot.since <= version <= slot.until or (slot.tag is not None and not flexible):
                continue
            if slot.shape.nullable and version >= slot.nullable_since and chance.random() < 0.05:
                given[slot.name] = None
            elif slot.shape.kind == "fixed" and chance.random() < 0.3:
                given[slot.name] = self._number(slot.name, slot.shape.code)
            elif slot.shape.kind == "string" and chance.random() < 0.02:
                given[slot.name] = ""
            elif isinstance(old, Struct):
                given[slot.name] = self._bent(old, version, flexible)
            elif isinstance(old, tuple) and chance.random() < 0.05:
                given[slot.name] = chance.choice([(), old * 2])
            elif isinstance(old, tuple):
                given[slot.name] = tuple(
                    self._bent(item, version, flexible) if isinstance(item, Struct) else item for item in old
                )
        return replace(struct, **given)

    def frame(self, key: int, version: int) -> bytes:
        """A request as it goes over the wire, or what damage leaves of it."""
        client_id = self._chance.choice([None, "", "stranger", "c" * 200, "c" * LONG])
        correlation = self._chance.randrange(1 << 31)
        try:
            whole = encode_request(self.request(key, version), version, correlation, client_id)
        except ValueError:  # two long strings in one that is as long as one may be
            whole = encode_request(registry.request_class(18)(), 0, 1, None)
        return whole if self._chance.random() < 0.7 else self._damaged(whole)

    def _damaged(self, whole: bytes) -> bytes:
        chance, body = self._chance, bytearray(whole[4:])
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(body) + 1)
            kind = chance.randrange(5)
            if kind == 0:
                del body[at:]
            elif kind == 1:
                body[at:at] = chance.randbytes(chance.randrange(1, 9))
            elif kind == 2:
                body[at : at + 4] = chance.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\xff\xff"])
            elif at < len(body):
                body[at] = chance.choice([0, 1, 127, 128, 255])
        size = len(body)
        if chance.random() < 0.1:
            size = chance.choice([-1, 0, 1, size + 1, size - 1, 1 << 20, (1 << 31) - 1, -(1 << 31)])
        return struct.pack(">i", size) + body

    def _struct(self, cls: type[Struct], version: int, flexible: bool) -> Struct:
        self._left -= 1
        given = {}
        for slot in slots_of(cls):
            absent = not slot.since <= version <= slot.until or (slot.tag is not None and not flexible)
            if absent:
                given[slot.name] = slot.default
            elif slot.shape.nullable and version >= slot.nullable_since and self._chance.random() < 0.2:
                given[slot.name] = None
            else:
                given[slot.name] = self._value(slot.name, slot.shape, version, flexible)
        return cls(**given)

    def _value(self, name: str, shape: Shape, version: int, flexible: bool) -> Any:
        chance = self._chance
        if shape.kind == "fixed":
            return self._number(name, shape.code)
        if shape.kind == "struct":
            assert shape.struct is not None
            return self._struct(shape.struct, version, flexible)
        if shape.kind == "array":
            assert shape.item is not None
            count = chance.choice(COUNTS) if self._left > 0 else 0
            made = [self._value(name, shape.item, version, flexible) for _ in range(count)]
            if made and not self._repeated and chance.random() < 0.1:
                self._repeated = True  # once in a request: within each other they would make gigabytes
                made *= chance.choice([2, 50, 300])
            return tuple(made)
        if shape.kind == "string":
            return chance.choice(NAMES) if chance.random() < 0.97 else "y" * LONG
        if shape.kind == "uuid":
            return chance.choice([bytes(16), bytes(15) + b"\1", chance.randbytes(16)])
        return chance.choice([b"", b"\0", b"\xff" * 40, BATCH, BATCH[:-1], BATCH * 2, chance.randbytes(70)])

    def _number(self, name: str, code: str) -> Any:
        chance = self._chance
        if code == "?":
            return chance.random() < 0.5
        if code == "d":
            return chance.choice([0.0, -1.5, float("inf"), float("nan")])
        bits = 8 * struct.calcsize(">" + code)
        low, high = (0, (1 << bits) - 1) if code.isupper() else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if name in ("max_wait_ms", "partitions", "num_partitions", "count"):
            high = 100  # how long to wait, and how much to make, is everybody's own affair
        found = chance.choice([0, 0, 1, 2, -1, low, high, chance.randrange(100), chance.randint(low, high)])
        return min(max(found, low), high)
