"""Tests that share a ZooKeeper run one after the other: those of one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampled import in_full

HERE = Path(__file__).parent
LARGE = ("test_a_storm_of_registrations[1000-1000]", "test_five_thousand_consumers")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By file; CI plays what is large on the tree in memory alone."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
            if item.name in LARGE:
                item.add_marker(in_full("1,000 members of one group come back on ZooKeeper itself"))
