"""The catalog: what is changed together is one write, and what could not be written never was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.log.files import CATALOG
from kgroup.runtime.catalog import PRODUCER_ID_BLOCK, Catalog, CatalogTopic
from kgroup.runtime.placement import Placement


def topic(name: str, number: int = 1) -> CatalogTopic:
    return CatalogTopic(name, bytes([number]) * 16, 2)


def no_space(fd: int) -> None:
    raise OSError(28, "No space left on device")


def test_changes_made_together_are_written_once(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    first = catalog.image.version
    with catalog.together():
        catalog.add(topic("a"))
        catalog.add(topic("b", 2))
        catalog.configure_group("g", {"consumer.session.timeout.ms": "45001"})
        catalog.remove("a")
    assert len((tmp_path / CATALOG).read_text().splitlines()) == 2  # as it was made, and this
    assert (list(catalog.topics), catalog.image.version) == (["b"], first + 1)


def test_a_block_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    (tmp_path / CATALOG).unlink()
    with catalog.together():
        catalog.configure_group("g", {})
    assert not (tmp_path / CATALOG).exists()


def test_what_cannot_be_written_was_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog(tmp_path)
    catalog.add(topic("a.b"))
    image = catalog.image
    monkeypatch.setattr(os, "fsync", no_space)
    changes: tuple[Callable[[], None], ...] = (
        lambda: catalog.add(topic("c", 2)),
        lambda: catalog.remove("a.b"),
        lambda: catalog.grow("a.b", 5, {4: Placement.at((0,))}),
        lambda: catalog.configure_group("g", {"consumer.session.timeout.ms": "45001"}),
        lambda: catalog.configure_broker("", {"max.connections": "5"}),
        lambda: catalog.finalize_features({}),
    )
    for change in changes:
        with pytest.raises(StorageError, match="No space left"):
            change()
    assert (catalog.topics, catalog.image) == ({"a.b": topic("a.b")}, image)
    assert (catalog.group_configs, catalog.broker_configs) == ({}, {})
    assert catalog.alike("a_b") == "a.b"
    monkeypatch.undo()
    assert Catalog(tmp_path).topics == {"a.b": topic("a.b")}


def test_a_producer_id_that_could_not_be_noted_is_not_given_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one would have been, and again after a restart."""
    catalog = Catalog(tmp_path)
    monkeypatch.setattr(os, "fsync", no_space)
    for _ in range(2):
        with pytest.raises(StorageError):
            catalog.allocate_producer_id()
    with pytest.raises(StorageError):
        catalog.reserve_producer_ids(7)
    monkeypatch.undo()
    assert [catalog.allocate_producer_id() for _ in range(2)] == [0, 1]
    assert Catalog(tmp_path).allocate_producer_id() == PRODUCER_ID_BLOCK


def test_names_that_differ_in_dots_only_are_alike() -> None:
    catalog = Catalog(None)
    assert catalog.alike("a.b") is None
    catalog.add(topic("a_b"))
    assert catalog.alike("a.b") == "a_b"
    catalog.remove("a_b")
    assert catalog.alike("a.b") is None


@pytest.mark.parametrize("below", [7, PRODUCER_ID_BLOCK + 7])
def test_producer_ids_of_a_log_that_came_from_elsewhere_are_not_given_out(tmp_path: Path, below: int) -> None:
    catalog = Catalog(tmp_path)
    assert catalog.allocate_producer_id() == 0
    catalog.reserve_producer_ids(below)
    catalog.reserve_producer_ids(3)
    assert [catalog.allocate_producer_id() for _ in range(2)] == [below, below + 1]
    assert Catalog(tmp_path).allocate_producer_id() > below + 1
