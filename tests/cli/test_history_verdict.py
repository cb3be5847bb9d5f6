"""`replay-log --verify` where the cluster does not answer in full: what was not compared is no verdict."""

from dataclasses import replace

import jsonschema
import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import Description, ItemError, Listing
from kgroup.admin.read.describe import describe
from kgroup.admin.read.listing import list_groups
from kgroup.cli.schemas import schema_for
from tests.cli.conftest import Kgroup, Ran
from tests.cli.live import Client
from tests.cli.logs import delete_topic

DESCRIBE, LIST_GROUPS = (f"kgroup.admin.read.verifying.{name}" for name in ("describe", "list_groups"))

SEEN, DARK = "verdict-seen", "verdict-dark"


@pytest.fixture
def groups(cluster: Client) -> None:
    """Two groups that the log and the cluster agree about."""
    for group in (SEEN, DARK):
        cluster.commit(group, "orders", {0: 5})


def describing(monkeypatch: pytest.MonkeyPatch, error: ItemError) -> None:
    """From now on the cluster answers for one of the groups with this error."""

    def partly(admin: ClusterView, names: object) -> Description:
        whole = describe(admin, names)  # type: ignore[arg-type]
        rest = tuple(group for group in whole.groups if group.group_id != DARK)
        return replace(whole, groups=rest, errors=(*whole.errors, error))

    monkeypatch.setattr(DESCRIBE, partly)


def verdicts(ran: Ran) -> dict[str, str]:
    jsonschema.validate(ran.document, schema_for("replay-log"))
    return {row["group_id"]: row["verdict"] for row in ran.document["data"]["groups"]}


VERIFY = ("replay-log", "--verify", "-o", "json")
UNANSWERED = ItemError(DARK, "COORDINATOR_NOT_AVAILABLE", "its coordinator did not answer")


@pytest.mark.usefixtures("groups")
def test_a_group_that_could_not_be_described_is_not_compared(
    on_cluster: Kgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    describing(monkeypatch, UNANSWERED)
    ran = on_cluster(*VERIFY, SEEN, DARK)
    assert verdicts(ran) == {SEEN: "same", DARK: "not compared"} and ran.code == 5
    dark = next(row for row in ran.document["data"]["groups"] if row["group_id"] == DARK)
    assert dark["differences"] == [] and dark["not_compared"] == [f"all of it: {UNANSWERED.message}"]


def test_a_group_that_only_the_list_has_does_not_vanish(
    on_cluster: Kgroup, monkeypatch: pytest.MonkeyPatch, cluster: Client
) -> None:
    cluster.commit(SEEN, "orders", {0: 5})
    error = replace(UNANSWERED, item="verdict-listed")
    whole = list_groups(cluster.admin)
    extra = next(g for g in whole.groups if g.group_id == SEEN)
    listing = Listing((*whole.groups, replace(extra, group_id=error.item)))
    monkeypatch.setattr(LIST_GROUPS, lambda admin: listing)
    describing(monkeypatch, error)
    ran = on_cluster(*VERIFY, "verdict-[ls]*")
    assert verdicts(ran) == {SEEN: "same", error.item: "not compared"} and ran.code == 5


@pytest.mark.parametrize("recreated", [False, True], ids=["deleted", "recreated"])
def test_a_member_that_owns_a_deleted_topic_is_no_difference(
    on_cluster: Kgroup, cluster: Client, recreated: bool
) -> None:
    """Brokers show no partitions of topics that are gone; the records keep them until the member acts."""
    name = f"verdict-gone-{recreated}"
    cluster.create_topic(name, 2)
    cluster.consumer_member(name, name, "i-0")
    delete_topic(cluster, name)
    if recreated:
        cluster.create_topic(name, 2)
    ran = on_cluster(*VERIFY, name)
    assert (verdicts(ran), ran.code) == ({name: "same"}, 0), ran.out


@pytest.mark.usefixtures("groups")
def test_a_group_the_cluster_does_not_know_differs(
    on_cluster: Kgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    describing(monkeypatch, ItemError(DARK, "GROUP_ID_NOT_FOUND", "there is none"))
    monkeypatch.setattr("kgroup.admin.read.verifying._POLL_S", 0)
    ran = on_cluster(*VERIFY, DARK)
    assert verdicts(ran) == {DARK: "differs"} and ran.code == 8


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("output", ["json", "table"])
def test_groups_that_the_list_may_lack_are_told(
    on_cluster: Kgroup, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    hidden = ItemError("broker 2", "UNREACHABLE", "broker 2 did not answer in time")

    def partly(admin: ClusterView) -> Listing:
        return replace(list_groups(admin), errors=(hidden,))

    monkeypatch.setattr(LIST_GROUPS, partly)
    ran = on_cluster("replay-log", "--verify", "verdict-[sd]*", "-o", output)
    assert ran.code == 5 and "error: broker 2 did not answer in time" in ran.err
    if output == "table":
        assert "2 groups: replay = live state; there may be groups that were not seen" in ran.out
    named = on_cluster(*VERIFY, SEEN, DARK)
    assert named.code == 0, "no list is needed for groups that are named"


@pytest.mark.usefixtures("groups")
def test_offsets_that_could_not_be_read_are_no_difference(
    on_cluster: Kgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread = ItemError("offsets", "COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is loading")

    def without_offsets(admin: ClusterView, names: object) -> Description:
        whole = describe(admin, names)  # type: ignore[arg-type]
        return replace(
            whole, groups=tuple(replace(group, offsets=(), errors=(unread,)) for group in whole.groups)
        )

    monkeypatch.setattr(DESCRIBE, without_offsets)
    ran = on_cluster(*VERIFY, SEEN)
    (row,) = ran.document["data"]["groups"]
    assert (row["verdict"], row["not_compared"]) == ("same", ["offsets: the coordinator is loading"])
    assert ran.code == 5


def test_a_group_that_was_deleted_is_the_same_on_both_sides(on_cluster: Kgroup, cluster: Client) -> None:
    cluster.commit("verdict-deleted", "orders", {0: 5})
    assert on_cluster("delete", "verdict-deleted", "--execute", "--yes").code == 0
    ran = on_cluster(*VERIFY, "verdict-deleted")
    (row,) = ran.document["data"]["groups"]
    assert (ran.code, row["verdict"], ran.err) == (0, "same", "")


def test_a_group_that_neither_side_has_is_not_found(on_cluster: Kgroup, groups: None) -> None:
    ran = on_cluster(*VERIFY, "verdict-nobody")
    assert ran.code == 3 and "neither the log nor the cluster has group verdict-nobody" in ran.err
    ran = on_cluster(*VERIFY, "verdict-nobody", SEEN)
    assert verdicts(ran) == {SEEN: "same"} and ran.code == 5


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("goes_on", [True, False])
def test_offsets_that_never_stand_still_are_no_difference(
    on_cluster: Kgroup, cluster: Client, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    """A group that commits every 300 ms differed, exit code 8; one that stands still and differs does."""
    at = iter(range(10, 1000))

    def later(admin: ClusterView, names: object) -> Description:
        if goes_on:
            cluster.commit(SEEN, "orders", {0: next(at)})
        told = describe(admin, names)  # type: ignore[arg-type]
        if goes_on:
            cluster.commit(SEEN, "orders", {0: next(at)})
            return told
        rows = tuple(replace(row, committed_offset=999) for row in told.groups[0].offsets)
        return replace(told, groups=(replace(told.groups[0], offsets=rows),))

    monkeypatch.setattr(DESCRIBE, later)
    ran = on_cluster(*VERIFY, SEEN)
    assert (verdicts(ran), ran.code) == (({SEEN: "same"}, 5) if goes_on else ({SEEN: "differs"}, 8))
    (row,) = ran.document["data"]["groups"]
    told = "offsets: they are committed faster than they can be compared"
    assert (told in row["not_compared"]) == goes_on
