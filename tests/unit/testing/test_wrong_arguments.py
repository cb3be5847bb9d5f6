"""Every public function of the kit answers a wrong argument with a KgroupError that has a hint."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kgroup.api import Kafka
from kgroup.errors import KgroupError
from kgroup.testing import Cluster
from kgroup.testing.faults import Fault

WRONG = (
    *(object(), 3.5, True, None, -1, 1 << 70, float("nan"), "", b"x", "\ud800"),
    *([object()], [3], ["a", 3], ("orders", 0), {1: 2}, {"a": object()}, {("orders", 0): 3}, lambda: 1 / 0),
)
RIGHT: dict[str, Any] = {
    "group": "pay",
    "condition": "empty",
    "topic": "orders",
    "name": "other",
    "records": [],
    "offsets": {},
    "by": "1ms",
    "member": "pay-0",
    "node": 9,
    "partition": 7,
    "scenario": "absent.yaml",
    "since_ms": 0,
    "bootstrap": "127.0.0.1:1",
    "hits": 0,
}
"""Of parameters without a default; what is asked for is not there, so that nothing changes."""
QUICK = {"timeout_s": 0.01, "patience_s": 0.01}
NO_ARGUMENTS = {"start", "stop", "close", "admin", "remove", "check"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(["orders"], timeout_s=1) as kafka:
        yield kafka


def verbs() -> list[tuple[type, str]]:
    """All public functions, and what makes the classes."""
    found = [(kind, "__init__") for kind in (Kafka, Cluster)]
    for kind in (Cluster, Fault):
        functions = inspect.getmembers(kind, inspect.isfunction)
        found += [(kind, name) for name, _ in functions if name[0] != "_" and name not in NO_ARGUMENTS]
    return found


def callable_of(kafka: Cluster, kind: type, name: str) -> Callable[..., object]:
    if name == "__init__":
        return kind
    here = kafka.observe(client="nobody") if kind is Fault else kafka
    found: Callable[..., object] = getattr(here, name)
    return found


@pytest.mark.parametrize(("kind", "name"), verbs(), ids=lambda each: getattr(each, "__name__", each))
def test_a_wrong_argument_gets_an_error_with_a_hint(kafka: Cluster, kind: type, name: str) -> None:
    call = callable_of(kafka, kind, name)
    parameters = inspect.signature(call).parameters.values()
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    needed = {
        each.name: RIGHT[each.name] for each in named if each.default is each.empty and each.name in RIGHT
    }
    quick = {each.name: QUICK[each.name] for each in named if each.name in QUICK}
    problems = []
    for each in named:
        for value in WRONG:
            if each.name in QUICK and value in (3.5, 1 << 70):
                continue  # right, and long
            arguments = {**needed, **quick, each.name: value}
            try:
                call(**arguments)
            except KgroupError as error:
                if not error.hint:
                    problems.append(f"{each.name}={value!r}: {error!r} has no hint")
            except ZeroDivisionError:
                continue  # what the test's own function raises
            except Exception as error:
                problems.append(f"{each.name}={value!r}: {error!r}")
    assert problems == []
