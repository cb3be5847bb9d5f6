"""`lag --at`: whatever cannot be seen of a cluster is as unknown in a recording as it was live."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.listing import list_groups
from kgroup.admin.recording.lines import Looked
from kgroup.admin.recording.look import Terms
from kgroup.admin.recording.observed import files_of, read
from kgroup.admin.recording.recorder import Limits, Recorder
from kgroup.history.sources.folders import LocalFolder
from tests.recorded_lag import as_recorded
from tests.walk.conftest import Ask
from tests.walk.test_share_groups import old as old_shares
from tests.walk.test_share_groups import world as share_groups
from tests.walk.test_two_rules import nothing_unknown_is_shown_as_zero
from tests.walk.world import SCENES, World


def old() -> World:
    """Share groups of brokers that do not report their offsets."""
    return old_shares.__wrapped__(share_groups.__wrapped__())  # type: ignore[attr-defined,no-any-return]


WORLDS: dict[str, Callable[[], World]] = {
    **SCENES,
    "share groups": share_groups.__wrapped__,  # type: ignore[attr-defined]
    "share groups of old brokers": old,
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("more", [(), ("--fail-above", "0")])
def test_what_is_unknown_then_is_what_was_unknown(
    ask: Ask, tmp_path: Path, name: str, more: tuple[str, ...]
) -> None:
    world = WORLDS[name]()

    def found(cluster: ClusterView) -> tuple[list[str], Any]:
        listing = list_groups(cluster)
        return [group.group_id for group in listing.groups], listing.errors

    view = ClusterView(world.fake, retry=world.fake.retry())
    Recorder(view, LocalFolder(tmp_path / "r"), found, Terms(patience_s=0.0), Limits()).look()
    (look,) = (line for line in read(files_of(LocalFolder(tmp_path / "r"))) if isinstance(line, Looked))
    at = ("--at", str(look.at_ms), "--files", str(tmp_path / "r"))
    live, then = ask(world, "lag", "g-*", *more), ask(world, "lag", "g-*", *more, *at)
    assert (live.code == 0) == (then.code == 0), (live.code, then.code, then.err)
    nothing_unknown_is_shown_as_zero(then.document)
    seen = {} if live.data is None else live.groups
    assert then.groups.keys() == seen.keys()
    for group_id, group in then.groups.items():
        assert group == as_recorded(seen[group_id], group)
    if live.data is not None:
        assert then.data["verdict"] == live.data["verdict"]
