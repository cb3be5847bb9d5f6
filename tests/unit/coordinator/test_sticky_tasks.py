"""The task assignor by its promises; that its answers are Kafka's own, the differential tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.coordinator.tasks.java_order import PriorityQueue, hash_map_order, string_hash
from kgroup.coordinator.tasks.sticky import NoAssignment, Placed, TaskKind, assign
from kgroup.coordinator.tasks.values import NO_TASK_SET, TaskSet

KINDS = st.dictionaries(
    st.sampled_from("0123"), st.builds(TaskKind, st.integers(1, 6), st.booleans()), min_size=1
)
PROCESSES = st.lists(st.sampled_from("pqrs"), min_size=1, max_size=6)


def _members(processes: list[str], before: dict[str, TaskSet] | None = None) -> dict[str, Placed]:
    return {
        f"m{number}": Placed(process, (before or {}).get(f"m{number}", NO_TASK_SET))
        for number, process in enumerate(processes)
    }


@given(KINDS, PROCESSES, st.integers(0, 2))
def test_every_task_is_active_once_and_evenly_spread(
    kinds: dict[str, TaskKind], processes: list[str], standbys: int
) -> None:
    answer = assign(_members(processes), kinds, standbys)
    given_out = sorted((s, p) for tasks in answer.values() for s, ps in tasks.active.items() for p in ps)
    assert given_out == [(name, p) for name in sorted(kinds) for p in range(kinds[name].tasks)]
    for name, kind in kinds.items():
        for partition in range(kind.tasks):
            where = [
                processes[int(member_id[1:])]
                for member_id, tasks in answer.items()
                for held in (tasks.active, tasks.standby)
                if partition in held.get(name, ())
            ]
            wanted = 1 + (standbys if kind.is_stateful else 0)
            assert len(where) == len(set(where)) == min(wanted, len(set(processes)))


@given(KINDS, PROCESSES, st.integers(0, 2))
def test_what_has_settled_stays(kinds: dict[str, TaskKind], processes: list[str], standbys: int) -> None:
    members = _members(processes)
    answer = assign(members, kinds, standbys)
    settled = assign(_members(processes, answer), kinds, standbys)
    again = assign(_members(processes, settled), kinds, standbys)
    assert {m: t.active for m, t in again.items()} == {m: t.active for m, t in settled.items()}


def test_nobody_to_assign_to_is_said() -> None:
    with pytest.raises(NoAssignment, match="No process available to assign active task 0_0"):
        assign({}, {"0": TaskKind(1, False)}, 0)


def test_a_hash_map_gives_out_its_keys_as_javas_does() -> None:
    """Seen in a JVM: `new HashMap` of these keys, put in this order."""
    assert string_hash("hello") == 99162322
    assert string_hash("\U0001f600") == 1772899
    keys = ["app-by-user-repartition", "app-counts-changelog", "orders", "users", "b", "r"]
    assert hash_map_order(keys) == [keys[0], "b", "r", keys[1], "orders", "users"]


def test_equals_leave_a_priority_queue_as_they_leave_javas() -> None:
    """Seen in a JVM: `new PriorityQueue` by the number alone."""
    queue = PriorityQueue([("a", 1), ("b", 0), ("c", 1), ("d", 0), ("e", 1), ("f", 0)], lambda item: item[1])
    order = [queue.poll() for _ in range(7)]
    assert [item and item[0] for item in order] == ["b", "d", "f", "a", "e", "c", None]
    assert len(queue) == 0


def _tasks(*partitions: int) -> dict[str, frozenset[int]]:
    return {"0": frozenset(partitions)}


def test_a_new_thread_has_work_although_those_before_it_had_all() -> None:
    """What a member may keep falls to what is left for each: a third thread gets one of four tasks."""
    before = {"m0": TaskSet(_tasks(0, 1)), "m1": TaskSet(_tasks(2, 3))}
    answer = assign(_members(["p", "q", "r"], before), {"0": TaskKind(4, False)}, 0)
    assert [len(answer[member].active.get("0", ())) for member in ("m0", "m1", "m2")] == [2, 1, 1]


def test_who_had_a_task_keeps_its_state_as_a_standby_when_another_is_to_work_on_it() -> None:
    before = {"m0": TaskSet(_tasks(0, 1, 2))}
    answer = assign(_members(["p", "q"], before), {"0": TaskKind(3, True)}, 1)
    assert answer["m0"] == TaskSet(_tasks(0, 1), _tasks(2))
    assert answer["m1"] == TaskSet(_tasks(2), _tasks(0, 1))


def test_of_two_that_kept_a_copy_the_one_with_less_to_do_keeps_it() -> None:
    before = {
        "m0": TaskSet(_tasks(1), _tasks(0)),
        "m1": TaskSet(standby=_tasks(0)),
        "m2": TaskSet(_tasks(0)),
    }
    answer = assign(_members(["p", "q", "r"], before), {"0": TaskKind(2, True)}, 1)
    assert {member: tasks.active for member, tasks in answer.items() if tasks.active} == {
        "m0": _tasks(1),
        "m2": _tasks(0),
    }
    assert answer["m1"].standby["0"] >= {0}


def test_of_processes_with_as_much_to_do_the_first_that_kept_a_copy_is_chosen() -> None:
    """As Kafka's findPrevMemberWithLeastLoad, which looks at a member's own load only after its process's."""
    before = {
        "m0": TaskSet(_tasks(0, 1), _tasks(3)),
        "m1": TaskSet(_tasks(2), _tasks(3)),
        "m2": NO_TASK_SET,
    }
    answer = assign(_members(["p", "q", "p"], before), {"0": TaskKind(4, True), "1": TaskKind(5, False)}, 0)
    assert answer["m0"].active["0"] == {0, 1, 3}


def test_who_kept_a_copy_and_works_on_the_task_now_keeps_no_copy_beside_it() -> None:
    """As Kafka, which then does not look at who kept a copy before."""
    before = {"m0": NO_TASK_SET, "m1": TaskSet(standby=_tasks(0))}
    answer = assign(_members(["p", "r"], before), {"0": TaskKind(1, True)}, 2)
    assert answer == {"m0": TaskSet(standby=_tasks(0)), "m1": TaskSet(_tasks(0))}


def test_a_process_that_works_on_a_task_keeps_no_copy_of_it_although_it_has_least_to_do() -> None:
    before = {"m0": TaskSet(_tasks(2), _tasks(1)), "m1": TaskSet(standby=_tasks(1))}
    answer = assign(_members(["p", "q"], before), {"0": TaskKind(3, True)}, 2)
    assert answer == {
        "m0": TaskSet(_tasks(0, 2), _tasks(1)),
        "m1": TaskSet(_tasks(1), _tasks(0, 2)),
    }


def test_of_threads_with_as_much_to_do_the_first_that_kept_a_copy_is_chosen() -> None:
    """Although the other's process has less to do: the count of the thread itself must be less, too."""
    before = {"m0": TaskSet(_tasks(1)), "m1": TaskSet(standby=_tasks(0)), "m2": TaskSet(standby=_tasks(0))}
    answer = assign(_members(["r", "r", "q"], before), {"0": TaskKind(2, True)}, 2)
    assert answer == {
        "m0": TaskSet(_tasks(1)),
        "m1": TaskSet(_tasks(0)),
        "m2": TaskSet(standby=_tasks(0, 1)),
    }
