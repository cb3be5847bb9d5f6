"""Tests that share locked brokers run one after the other, so that no broker is started twice."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By file, and by the kind of broker where a test is at one."""
    for item in items:
        if item.path.parent == HERE:
            given = getattr(item, "callspec", None)
            kind = given and (given.params.get("locked") or given.params.get("broker"))
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{kind}" if kind else item.path.stem))
