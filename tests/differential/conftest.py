"""One machine of Kafka's for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .kafka import Kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    with Kafka() as running:
        yield running
