"""Every command against a broker that answers nonsense: one field of one decoded answer is another value.

Judge: what happens is said in words, and a code that no command knows is no success.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

import pytest

from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_configs import DescribeConfigsResponse
from kgroup.protocol.messages.list_offsets import ListOffsetsResponse
from kgroup.protocol.messages.metadata import MetadataResponse
from tests.walk.test_outages import ROWS, Refusing, files
from tests.walk.world import READER, World, healthy

__all__ = ["files"]
UNFORESEEN = "does not know how to handle"
STRANGE_CODE = 9_999
SEEDS = 4
READS = {"list", "describe", "lag"}
DECISIVE = {("ListGroupsResponse", 1), ("OffsetFetchResponse", 7), ("ListOffsetsResponse", 5)}
"""Answers by the depth of an error code that says that something is not shown."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all fields and items in a message."""
    if is_dataclass(value):
        for each in fields(value):
            here = (*path, each.name)
            yield here
            yield from places(getattr(value, each.name), here)
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield (*path, number)
            yield from places(item, (*path, number))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = getattr(value, step) if isinstance(step, str) else value[step]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The same message with another value at `path`."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return replace(value, **{step: put(getattr(value, step), rest, new)})
    return (*value[:step], put(value[step], rest, new), *value[step + 1 :])


def other(random: Random, value: Any, name: Any) -> Any:
    """Another value of the same type, as no honest broker answers it."""
    if name == "error_code":
        return STRANGE_CODE
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice((-1, -2, 0, 1, 2, 7, 127, value + 1, -value))
    if isinstance(value, str):
        return random.choice(("", "zz", value + "x", "\x1b[31m", "__consumer_offsets"))
    if isinstance(value, bytes):
        return random.choice((b"", b"\xff" * len(value), value[: len(value) // 2], value + b"\0"))
    if isinstance(value, tuple):
        return random.choice(((), value[1:], value[:-1], value + value[:1], value[::-1]))
    return value


class Rogue:
    """Changes one answer of a world, by chance."""

    def __init__(self, world: World, seed: int) -> None:
        self.random = Random(seed)
        self.changed: list[tuple[str, tuple[Any, ...], Any]] = []
        self._nth = self.random.randrange(8)
        self._world = world
        self._answer = world.fake.request
        world.fake.request = self.request  # type: ignore[method-assign]

    def request(self, node: int | None, message: Message, **how: Any) -> Message:
        answer = self._answer(node, message, **how)
        self._nth -= 1
        if self._nth >= 0 or self.changed:
            return answer
        path = self.random.choice(list(places(answer)))
        value = at(answer, path)
        new = other(self.random, value, path[-1])
        version = self._world.fake.sent[-1][2]
        try:
            changed = type(answer).decode(put(answer, path, new).encode(version), version)
        except ValueError:
            return answer  # no bytes say this
        if changed != answer:
            self.changed.append((type(answer).__name__, path, new))
        return changed


@pytest.mark.parametrize("argv", ROWS, ids=" ".join)
def test_nonsense_is_told_in_words(ask, files, argv):
    """`list` ended with KeyError: '__consumer_offsets' at half of such brokers."""
    for seed in range(SEEDS):
        world = healthy()
        world.fake.handlers = Refusing(world.fake.handlers)
        rogue = Rogue(world, seed)
        told = ask(world, *argv, "-o", "table")
        assert UNFORESEEN not in told.err, (seed, rogue.changed)
        for answer, path, new in rogue.changed:
            if new == STRANGE_CODE and (answer, len(path)) in DECISIVE and argv[0] in READS:
                assert told.code != 0 and f"ERROR_{STRANGE_CODE}" in told.err, (seed, rogue.changed)


@pytest.mark.parametrize(
    ("answer", "path", "new"),
    [
        (MetadataResponse, ("topics",), ()),
        (MetadataResponse, ("topics", 0, "name"), "zz"),
        (MetadataResponse, ("topics", 0, "partitions", 0, "partition_index"), -3),
        (MetadataResponse, ("topics", 0, "partitions"), ()),
        (ListOffsetsResponse, ("topics",), ()),
        (ListOffsetsResponse, ("topics", 0, "partitions"), ()),
        (DescribeConfigsResponse, ("results", 0, "configs", 3, "value"), "zz"),
    ],
)
@pytest.mark.parametrize("argv", [("list",), ("replay-log", "g-*", "--verify"), ("coordinator", READER)])
def test_nonsense_that_was_met(ask, answer, path, new, argv):
    world = healthy()
    honest = world.fake.request

    def request(node: int | None, message: Message, **how: Any) -> Message:
        told = honest(node, message, **how)
        if type(told) is not answer:
            return told
        try:
            return put(told, path, new)
        except IndexError:
            return told

    world.fake.request = request  # type: ignore[method-assign]
    assert UNFORESEEN not in ask(world, *argv, "-o", "table").err
