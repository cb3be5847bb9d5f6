"""Incidents: one per cause, opened and closed by two looks in a row, and the same ones after a restart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kgroup.admin.diagnose.doctor import Checkup
from kgroup.admin.models import GroupDescription, ItemError
from kgroup.admin.recording.bodies import FORMATS
from kgroup.admin.recording.causes import BROKERS, Bad
from kgroup.admin.recording.incidents import Incidents
from kgroup.admin.recording.lines import Incident
from kgroup.admin.recording.look import Look
from kgroup.admin.statuses import Unseen


def checkup(name: str, *unseen: Unseen) -> Checkup:
    return Checkup(GroupDescription(name, "classic", "consumer", "Stable"), (), unseen)


def seen(at_ms: int, *names: str, dark: Iterable[str] = ()) -> Look:
    """A look at groups, of which the dark ones could not be described."""
    errors = {name: ItemError(name, "UNREACHABLE", "no answer") for name in dark}
    return Look(at_ms, {name: checkup(name) for name in names}, errors=errors)


def bad(group: str, code: str = "KG310", key: str | None = None) -> Bad:
    return Bad(key or f"group {group}", group, code, "error", f"{group} is bad", ("fact",), "kgroup doctor")


def played(*looks: tuple[Look, list[Bad]]) -> tuple[Incidents, list[list[str]]]:
    """The incidents after these looks, and the changes of each look in short."""
    now, told = Incidents(), []
    for look, those in looks:
        now, changes = now.after(look, those)
        told.append([f"{each.event} {each.key} {'+'.join(each.groups)}" for each in changes])
    return now, told


def test_two_looks_open_an_incident_and_two_close_it() -> None:
    a = [bad("a")]
    _, told = played(
        (seen(1, "a"), a),
        (seen(2, "a"), []),
        (seen(3, "a"), a),
        (seen(4, "a"), a),
        (seen(5, "a"), a),
        (seen(6, "a"), []),
        (seen(7, "a"), a),
        (seen(8, "a"), []),
        (seen(9, "a"), []),
    )
    assert told == [[], [], [], ["opened group a a"], [], [], [], [], ["closed group a a"]]


def test_one_that_comes_back_soon_is_the_same_and_a_later_one_is_not() -> None:
    a, minute = [bad("a")], 60_000
    again = [(seen(1, "a"), a), (seen(2, "a"), a), (seen(3, "a"), []), (seen(4, "a"), [])]
    now, told = played(*again, (seen(5, "a"), a), (seen(6, "a"), a))
    assert told[3:] == [["closed group a a"], [], ["opened group a a"]]
    assert (now.open["group a"].id, now.open["group a"].since_ms) == (f"1-{now.open['group a'].id[2:]}", 1)
    for others, at_ms in ((a, 11 * minute), ([bad("a", "KG301")], minute)):
        later, _ = played(*again, (seen(at_ms, "a"), others), (seen(at_ms + 1, "a"), others))
        assert later.open["group a"].since_ms == at_ms


def test_what_a_look_cannot_see_closes_nothing() -> None:
    """The history shows a silent member: without it the finding is not there either."""
    a, hidden = [bad("a")], Unseen("history", "NOT_READ", "the log could not be read")
    blind = [(Look(at_ms, {"a": checkup("a", hidden)}), list[Bad]()) for at_ms in (3, 4, 5)]
    _, told = played((seen(1, "a"), a), (seen(2, "a"), a), *blind, (seen(6, "a"), []), (seen(7, "a"), []))
    assert told[1:] == [["opened group a a"], [], [], [], [], ["closed group a a"]]
    # What was hidden all the time decided nothing.
    always = [(Look(at_ms, {"a": checkup("a", hidden)}), a if at_ms < 3 else []) for at_ms in (1, 2, 3, 4)]
    assert played(*always)[1] == [[], ["opened group a a"], [], ["closed group a a"]]


def test_one_cause_is_one_incident_over_all_its_groups() -> None:
    those = [bad(name, "KG302", "topic orders") for name in ("a", "b")]
    now, told = played(
        (seen(1, "a", "b"), those),
        (seen(2, "a", "b"), those),
        (seen(3, "a", "b", "c"), [*those, bad("c", "KG302", "topic orders")]),
        (seen(4, "a", "b", "c"), [*those]),
    )
    assert told[1:] == [["opened topic orders a+b"], ["updated topic orders a+b+c"], []]
    assert now.open["topic orders"].since_ms == 1


def test_a_cause_that_is_known_later_changes_the_incident_and_opens_no_other() -> None:
    alone, both = [bad("a")], [bad("a", key="host h"), bad("b", key="host h")]
    _, told = played(
        (seen(1, "a", "b"), alone),
        (seen(2, "a", "b"), alone),
        (seen(3, "a", "b"), both),
        (seen(4, "a", "b"), alone),
        (seen(5, "a", "b"), []),
        (seen(6, "a", "b"), []),
    )
    assert told[1:] == [["opened group a a"], ["updated host h a+b"], [], [], ["closed group a a+b"]]


@pytest.mark.parametrize(
    "unseen",
    [
        seen(9, dark=["a"]),
        Look(9, failed=ItemError("cluster", "UNREACHABLE", "no broker")),
        Look(9, {"a": checkup("a", Unseen("history", "LEADER_NOT_AVAILABLE", "no leader"))}),
        Look(9, unseen=(ItemError("broker 2", "UNREACHABLE", "no answer"),)),
    ],
)
def test_what_is_not_seen_closes_nothing(unseen: Look) -> None:
    a = [bad("a")]
    now, _ = played((seen(1, "a"), a), (seen(2, "a"), a))
    for _ in range(5):
        now, changes = now.after(unseen, [])
        assert changes == [] and now.open.keys() == {"group a"}
    gone = Look(10, errors={"a": ItemError("a", "GROUP_ID_NOT_FOUND", "it is gone")})
    for _ in range(2):
        now, changes = now.after(gone, [])
    assert [each.event for each in changes] == ["closed"]


def test_the_incident_of_brokers_ends_when_they_answer() -> None:
    down = [bad("", key=BROKERS), bad("a", key=BROKERS)]
    _, told = played(
        (seen(1, dark=["a"]), down), (seen(2, dark=["a"]), down), (seen(3, "a"), []), (seen(4, "a"), [])
    )
    assert told[1:] == [["opened brokers a"], [], ["closed brokers a"]]


def test_a_restart_goes_on_with_what_was_open() -> None:
    a, b = [bad("a")], [bad("b")]
    now, lines = Incidents(), list[Incident]()
    for look, those in ((seen(1, "a", "b"), a + b), (seen(2, "a", "b"), a + b), (seen(3, "a", "b"), a)):
        now, changes = now.after(look, those)
        lines += changes
    now, changes = now.after(seen(4, "a", "b"), a)
    lines += changes
    again = Incidents.resumed(lines)
    assert (again.open, again.number) == (now.open, now.number) == (now.open, 3)
    restated = again.restated(50)
    assert Incidents.resumed(restated, again.number).open.keys() == {"group a"}
    # It was seen before the restart: it is not opened a second time.
    _, changes = again.after(seen(60, "a", "b"), a)
    assert changes == []


def test_numbers_grow_without_a_gap() -> None:
    those = [bad(name) for name in "abc"]
    now, changes = Incidents(number=7).after(seen(1, *"abc"), those)
    now, changes = now.after(seen(2, *"abc"), those)
    assert [each.number for each in changes] == [8, 9, 10] and now.number == 10


def test_bodies_name_the_incident_and_quote_what_it_names() -> None:
    (incident,) = played_incident("<!channel>&")
    slack, alerts, own = (FORMATS[name](incident) for name in ("slack", "alertmanager", "json"))
    assert isinstance(slack, dict) and "<" not in slack["text"] and "&lt;!channel&gt;&amp;" in slack["text"]
    assert isinstance(alerts, list) and alerts[0]["labels"]["incident"] == incident.id
    closed = FORMATS["alertmanager"](replace(incident, event="closed", at_ms=500, key="host h"))
    assert isinstance(closed, list) and closed[0]["labels"] == alerts[0]["labels"]
    assert closed[0]["endsAt"] == "1970-01-01T00:00:00.500Z" < alerts[0]["endsAt"]
    assert isinstance(own, dict) and own["event"] == "incident_opened" and own["run"] == "kgroup doctor"


def played_incident(group: str) -> list[Incident]:
    now, _ = Incidents().after(seen(1, group), [bad(group)])
    return now.after(seen(2, group), [bad(group)])[1]
