"""A sample of the exam of plans; `make exam ARGS="--plans --count 20000"` runs as many states as wanted."""

from __future__ import annotations

from .plans import examined
from .states import State, drawn_for_plans

COUNT = 6
VIEWS = ("settings", "replicas", "lagging", "topics")
FOUND = (
    "subscription=two-applications seed=4",
    "protocol=mixed membership=full room=two seed=9",
    "protocol=consumer room=one seed=48",
    "protocol=consumer policy=upgrade room=one seed=1",
    "protocol=mixed subscription=other-topic room=one seed=160",
    "protocol=mixed room=classic-one seed=130",
    "owner=dead-static others=alone room=one seed=125",
    "subscription=other-topic room=two client=other-type seed=110",
    "client=undecodable seed=1",
    "client=librdkafka seed=1",
    "membership=rebalance seed=1",
    "owner=none seed=2",
    "owner=none visibility=topics seed=0",
    "subscription=two-applications since=5 client=undecodable seed=41488",
)
"""States in which a plan was wrong."""


def test_what_plans_say_follows() -> None:
    states = [*map(drawn_for_plans, range(COUNT)), *map(State.parse, FOUND)]
    found = {
        f"{fault.judge}: {fault.why}\n  python -m tests.exam --plans --replay '{state}'"
        for state, bad in examined(states, VIEWS)
        for fault in bad
    }
    assert not found, "\n".join(sorted(found))
