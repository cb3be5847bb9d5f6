"""Dataclasses that share their methods behave as Python's; images of topics, made one of another."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.domain import Topic, TopicImage, value


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


@pytest.mark.parametrize("made", [Ours, Pythons])
def test_it_takes_what_its_fields_say(made: type) -> None:
    """Of every field by position or by name; what has a default may be left out, no more and no less."""
    assert made("a", "b") == made(secret="b", name="a") and made("a", "b").remembered == 0
    assert made("a", secret="b", remembered=3).remembered == 3 and made("a", "b").remembered == 0
    for wrong, named in (("a",), {}), (("a", "b", 1, 2), {}), (("a", "b"), {"other": 1}):
        with pytest.raises(TypeError, match=rf"^{made.__qualname__}\.__init__\(\)"):
            made(*wrong, **named)


def test_what_is_checked_once_it_is_made_is_checked() -> None:
    @value
    class Positive:
        number: int

        def __post_init__(self) -> None:
            assert self.number > 0, "not positive"

    assert Positive(1).number == 1
    with pytest.raises(AssertionError, match="not positive"):
        Positive(0)


def test_a_made_default_is_made_for_each() -> None:
    @value
    class Gathered:
        found: list[int] = field(default_factory=list)
        also: tuple[int, ...] = (1,)
        own: list[int] = field(init=False, default_factory=list)

    one, other = Gathered(), Gathered()
    one.found.append(1)
    one.own.append(2)
    assert (one.found, other.found, other.also, Gathered([2]).found) == ([1], [], (1,), [2])
    assert (replace(one, also=()).found, replace(one, also=()).own) == ([1], [])


def test_another_class_of_the_same_fields_is_another() -> None:
    assert Ours("a", "b") != Pythons("a", "b")


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abcd"), st.none() | st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=4
        ),
        max_size=6,
    )
)
def test_an_image_made_from_the_one_before_is_as_one_made_of_all(steps: list[dict[str, Any]]) -> None:
    """And what differs is the same, whether it is remembered or found by comparing."""
    image, topics = TopicImage(), dict[str, Topic]()
    for step in steps:
        changed = {
            name: entry and Topic(name, f"{name}{entry[0]}".encode(), entry[1])
            for name, entry in step.items()
            if entry or name in topics
        }
        before, topics = topics, {name: topic for name, topic in {**topics, **changed}.items() if topic}
        following = image.changed(changed)
        created = following.version if changed.keys() - before.keys() else image.created_version
        whole = TopicImage.of(topics.values(), image.version + 1, created)
        assert following == whole
        assert following.changes_since(image) == whole.changes_since(image)
        assert following.changes_since(TopicImage()) == whole.changes_since(TopicImage())
        image = following
