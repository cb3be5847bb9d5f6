"""Stored values: what is encoded comes back equal, and nothing but the declared types ever comes out."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgroup.history.fold.snapshot import kept
from kgroup.history.typed_json import Codec, Foreign
from kgroup.protocol import group_records, share_records


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Place(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True)
class Circle:
    radius: int


@dataclass(frozen=True, kw_only=True)
class Square:
    side: int | None = None
    name: str = ""


@dataclass
class Drawing:
    shape: Circle | Square
    colours: dict[tuple[Colour, bool], list[Place]] = field(default_factory=dict)
    places: frozenset[Place] = frozenset()
    raw: bytes | None = None
    nested: Place = Place("t", 0)
    by_place: Mapping[Place, int] = field(default_factory=dict)
    either: Circle | Square | None = None
    pairs: tuple[tuple[int, str], ...] = ()


DRAWING = Codec(Drawing, shared=(Place,))
INTS = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5) | st.just("\\ud800 is six letters")
PLACES = st.builds(Place, TEXTS, INTS)
SHAPES = st.builds(Circle, INTS) | st.builds(Square, side=INTS | st.none(), name=TEXTS)
DRAWINGS = st.builds(
    Drawing,
    SHAPES,
    st.dictionaries(st.tuples(st.sampled_from(Colour), st.booleans()), st.lists(PLACES, max_size=2)),
    st.frozensets(PLACES, max_size=3),
    st.binary(max_size=5) | st.none(),
    PLACES,
    st.dictionaries(PLACES, INTS, max_size=3),
    SHAPES | st.none(),
    st.lists(st.tuples(INTS, TEXTS), max_size=2).map(tuple),
)


@given(DRAWINGS)
def test_what_is_encoded_comes_back(drawing: Drawing) -> None:
    assert DRAWING.decode(DRAWING.encode(drawing)) == drawing


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)


@given(DRAWINGS, JSON, st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_a_value_of_another_type_anywhere_is_foreign_or_of_the_declared_type(
    drawing: Drawing, put: Any, path: list[int]
) -> None:
    """Somewhere in sound data there is something else."""
    plain = json.loads(DRAWING.encode(drawing))
    at = plain
    for step in path[:-1]:
        at = at[step % len(at)] if isinstance(at, list) and at else at
    if isinstance(at, list) and at:
        at[path[-1] % len(at)] = put
    try:
        found = DRAWING.decode(json.dumps(plain).encode())
    except Foreign:
        return
    assert DRAWING.decode(DRAWING.encode(found)) == found


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return (pytest.fail, ("code was run",))


@given(st.binary(max_size=40))
@example(pickle.dumps(Bomb()))
@example(b"[" * 1_000_000)
@example(b'{"a":' * 1_000_000)
@example(b"9" * 100_000)
@example(b'["\\ud800"]')
@example(b"\xff\xfe")
@example(b"")
def test_anything_else_is_foreign(data: bytes) -> None:
    for codec in (DRAWING, kept()):
        with pytest.raises(Foreign):
            codec.decode(data)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ([[], 0], "Drawing has .* values, and there are 2"),
        ([["Circle", [True]], [[], []], [], None, "t", 0, [[], []], None, []], "is bool where int is wanted"),
        ([["Circle", [1 << 63]], [[], []], [], None, "t", 0, [[], []], None, []], "more than 64 bits"),
        ([["Circle", [1]], [[], []], [], "!", "t", 0, [[], []], None, []], "not base64"),
        (
            [["Circle", [1]], [[], []], [], None, "t", 0, [[["t", 1], ["t", 1]], [1, 2]], None, []],
            "each key needs one value",
        ),
        ([["Circle", [1]], [[], []], [3], None, "t", 0, [[], []], None, []], "in a list is not Place"),
    ],
)
def test_an_error_says_what_is_where(plain: object, message: str) -> None:
    with pytest.raises(Foreign, match=message):
        DRAWING.decode(json.dumps(plain).encode())


def test_two_classes_of_one_name_are_kept_apart() -> None:
    codec = Codec(tuple[group_records.TopicPartitions, share_records.TopicPartitions])
    pair = (
        group_records.TopicPartitions(topic_id=b"a" * 16, partitions=(1,)),
        share_records.TopicPartitions(topic_id=b"b" * 16, partitions=(2, 3)),
    )
    back = codec.decode(codec.encode(pair))
    assert back == pair
    assert list(map(type, back)) == list(map(type, pair))


def test_equal_places_of_a_group_come_out_as_one_object() -> None:
    place = Place("t", 1)
    found = DRAWING.decode(DRAWING.encode(Drawing(Circle(1), places=frozenset({place}), nested=place)))
    assert found.nested is next(iter(found.places))
