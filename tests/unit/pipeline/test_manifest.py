"""What a store remembers between runs."""

import pytest

pytest.importorskip("pyarrow")

from kgroup.history.deliveries import kept_deliveries
from kgroup.history.fold.snapshot import kept
from kgroup.pipeline.tables import manifest as manifests
from kgroup.pipeline.tables.manifest import FORMATS, Manifest


def test_names_of_topics_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a log with an id of its own in every commit, each task of a fold would get millions of names."""
    monkeypatch.setattr(manifests, "MAX_NAMES", 3)
    manifest = Manifest(names={"a": "orders"})
    manifest.learn({"b": "payments", "a": "another"})
    manifest.learn({"c": "parcels", "d": "too many"})
    assert manifest.names == {"a": "orders", "b": "payments", "c": "parcels"}


def test_what_is_stored_changes_only_with_the_format() -> None:
    """Another layout is not read: raise its number in FORMATS, so that the next run folds again."""
    assert (FORMATS["folds"], kept().layout) == (14, "960d596685e768d1")
    assert (FORMATS["deliveries"], kept_deliveries().layout) == (9, "cffc2300bac4837a")
