"""What the house tests keep while they run."""

from collections.abc import Iterator

import pytest

from tests.house.repository import nodes


@pytest.fixture(scope="package", autouse=True)
def modules_forgotten() -> Iterator[None]:
    """The nodes of all modules take some hundred megabytes, which no other test needs."""
    yield
    nodes.cache_clear()
