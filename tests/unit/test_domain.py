"""What dataclasses that share their methods compare, hash and show: as `dataclass` itself has it."""

from dataclasses import dataclass, field

import pytest

from kgroup.domain import value


@value
class Ours:
    name: str
    secret: str = field(repr=False)
    remembered: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Pythons:
    name: str
    secret: str = field(repr=False)
    remembered: int = field(default=0, compare=False)


@pytest.mark.parametrize("made", [Ours, Pythons])
def test_what_is_not_to_be_shown_is_not(made: type) -> None:
    assert repr(made("a", "hunter2", 3)) == f"{made.__qualname__}(name='a', remembered=3)"


@pytest.mark.parametrize("made", [Ours, Pythons])
def test_what_is_not_to_be_compared_is_not(made: type) -> None:
    assert made("a", "b", 1) == made("a", "b", 2) != made("a", "c", 1)
    assert hash(made("a", "b", 1)) == hash(made("a", "b", 2)) == hash(("a", "b"))


def test_another_class_of_the_same_fields_is_another() -> None:
    assert Ours("a", "b") != Pythons("a", "b")
