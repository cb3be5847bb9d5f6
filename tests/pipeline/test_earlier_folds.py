"""Folds that earlier versions left in a folder of tables go on in this one.

`tests/data/folds/INCIDENT.CUT.fold` is what kgroup wrote after the first CUT items of an incident, before its
packages were divided.
"""

import pickle
from pathlib import Path

import pytest

from kgroup.domain import MemberStatus
from kgroup.errors import StorageError
from kgroup.history.fold.events import Event
from kgroup.history.fold.folding import Fold
from kgroup.history.items import Item
from kgroup.pipeline.tables.folding import unpickled
from tests.unit.history.incidents import log_of
from tests.unit.history.logs import items

pytestmark = pytest.mark.spark
FOLDS = sorted((Path(__file__).resolve().parents[1] / "data" / "folds").glob("*.fold"))


def apply(fold: Fold, log: list[Item]) -> list[Event]:
    return [event for item in log for event in fold.apply(item)]


@pytest.mark.parametrize("path", FOLDS, ids=lambda path: path.stem)
def test_a_fold_of_an_earlier_version_goes_on(path: Path) -> None:
    name, cut = path.stem.split(".")
    log = items(log_of(name).files[0].read_bytes())
    whole, first = Fold(0), Fold(0)
    expected = apply(whole, log) + whole.finish()
    before = apply(first, log[: int(cut)])
    stored = unpickled(path.read_bytes())
    assert stored.seq == len(before)
    assert before + apply(stored.fold, log[int(cut) :]) + stored.fold.finish() == expected


def test_what_was_a_member_in_the_first_version_of_the_packages_is_a_members_state() -> None:
    stored = b"ckgroup.history.fold.state\nMember\n."
    assert unpickled(stored).__name__ == "RecordedMember"


def test_members_of_enumerations_are_read_as_older_pythons_store_them() -> None:
    """Before 3.11.4: as an attribute of the class, by getattr, which is of use for nothing else."""
    stored = b"cbuiltins\ngetattr\n(ckgroup.%s\nV%s\ntR."
    assert unpickled(stored % (b"domain\nMemberStatus", b"STABLE")) is MemberStatus.STABLE
    for other in ((b"domain\nMemberStatus", b"__class__"), (b"history.fold.folding\nFold", b"apply")):
        with pytest.raises(StorageError, match=r"cannot be used: .* does not belong into a store"):
            unpickled(stored % other)


def test_a_class_that_is_no_more_is_said_to_be_none() -> None:
    with pytest.raises(StorageError, match="the state of an earlier run cannot be used"):
        unpickled(pickle.dumps(Fold(0)).replace(b"folding", b"falding"))
