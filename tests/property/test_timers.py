"""The timer queue against a dictionary: same deadlines and order, whatever is armed, moved, cancelled."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kgroup.timers import TimerKey, Timers

KEYS = [TimerKey("session", "g", name) for name in "abcd"] + [TimerKey("join", "g")]
ACTIONS = st.one_of(
    st.tuples(st.just("arm"), st.sampled_from(KEYS), st.integers(0, 30)),
    st.tuples(st.just("cancel"), st.sampled_from(KEYS), st.just(0)),
    st.tuples(st.just("pass"), st.sampled_from(KEYS), st.integers(0, 20)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(ACTIONS, max_size=60))
def test_same_as_a_dictionary(actions: list[tuple[str, TimerKey, int]]) -> None:
    timers, model, now = Timers(), dict[TimerKey, tuple[int, object]](), 0
    for number, (action, key, ms) in enumerate(actions):
        if action == "arm":
            timers.arm(key, now + ms, number)
            model[key] = now + ms, number
        elif action == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            now += ms
            _fire_all(timers, model, now)
        assert timers.next_ms() == min((due for due, _ in model.values()), default=None)
        assert {key for key in KEYS if key in timers} == model.keys()
        assert all(timers.deadline(key) == model.get(key, (None,))[0] for key in KEYS)
    _fire_all(timers, model, now + 100)
    assert not model
    assert timers.next_ms() is None


def _fire_all(timers: Timers, model: dict[TimerKey, tuple[int, object]], now: int) -> None:
    """Take everything due: each once, in order, with what it was armed with."""
    last = -1
    while (fired := timers.pop_due(now)) is not None:
        key, what = fired
        due, armed_with = model.pop(key)
        assert last <= due <= now
        assert what == armed_with
        last = due
    assert all(due > now for due, _ in model.values())


def test_deadlines_at_the_same_time_fire_in_the_order_they_were_armed() -> None:
    timers = Timers()
    for key in (KEYS[2], KEYS[0], KEYS[1]):
        timers.arm(key, 5)
    assert [timers.pop_due(5) for _ in range(4)] == [(KEYS[2], None), (KEYS[0], None), (KEYS[1], None), None]


def test_a_deadline_moved_back_and_forth_fires_once_at_its_last_place() -> None:
    timers = Timers()
    for ms in (10, 30, 20, 40, 5, 25):
        timers.arm(KEYS[0], ms, ms)
    assert timers.pop_due(24) is None
    assert timers.pop_due(25) == (KEYS[0], 25)
    assert timers.pop_due(1000) is None


def test_a_session_renewed_many_times_leaves_no_heap_behind() -> None:
    timers = Timers()
    for now in range(10_000):
        timers.arm(KEYS[now % 4], now + 45_000)
        timers.next_ms()
    assert len(timers._heap) <= len(KEYS)
