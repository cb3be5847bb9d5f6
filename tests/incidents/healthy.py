"""Everything is healthy: ordinary deployments, and nothing to find."""

from __future__ import annotations

import itertools
import os
import time

from tests.sampled import FULL

from .playing import incident
from .scene import Reader, Scene
from .truth import Says, Truth, at

SECONDS = int(os.environ.get("KGROUP_INCIDENTS_HEALTHY_S", "40" if FULL else "20"))
KINDS: dict[str, dict[str, str]] = {
    "eager": {"assignor": "range"},
    "sticky": {"assignor": "sticky"},
    "round": {"assignor": "roundrobin"},
    "cooperative": {"assignor": "cooperative-sticky"},
    "next": {"protocol": "consumer"},
}
SEATS = range(3)


@incident(30, sample=("kafka",))
def ordinary_deployments(scene: Scene) -> Truth:
    """Ten groups, each kind with static ids and without, are deployed again and again while records flow."""
    topics: dict[str, str] = {}
    seated: dict[str, list[Reader]] = {}
    process = scene.process("java")
    for kind, static in itertools.product(KINDS, (False, True)):
        group = f"{scene.name}-{kind}-{'static' if static else 'dynamic'}"
        topic = topics[group] = scene.topic(6, f"{kind}-{static}")
        scene.flow(topic, 6)
        seated[group] = [
            scene.reader(
                f"{group}-{seat}",
                topic,
                client="java",
                group=group,
                instance=f"seat-{seat}" if static else None,
                session_ms=20_000,
                process=process,
                **KINDS[kind],
            )
            for seat in SEATS
        ]
        scene.settled(topic, 6, *seated[group], each=2)
    scene.groups = list(topics)
    looks, ends = [scene.asked("doctor")], time.monotonic() + SECONDS
    while time.monotonic() < ends:
        for group, seat in itertools.product(topics, SEATS):
            seated[group][seat].close()
            seated[group][seat] = scene.again(seated[group][seat])
            scene.settled(topics[group], 6, *seated[group], each=2)
            if time.monotonic() > ends:
                break
        looks.append(scene.asked("doctor"))
    for group in topics:
        scene.until(lambda g=group: len(scene.committed(g)) == 6, f"{group} has committed every partition")
    error = at("groups.findings", severity="error")
    return Truth(
        who="ten groups of three members, of every assignor and both protocols, half of them static",
        what="each member is stopped and comes back, one after the other",
        when=f"for {SECONDS} s",
        why="deployments",
        describe=Says((at("groups", state="Stable"),), (at("groups.findings", severity="error"),)),
        lag=Says((at("groups", unknown_partitions="^0$"),), (at("groups", unknown_partitions="^[1-9]"),)),
        doctor=Says((at("groups", verdict="healthy"),), (at("groups", verdict="sick|unknown"),)),
        blame=Says(
            (at("groups.blames", about="rebalance"),), ("records do not tell why", 'suspicious": true')
        ),
        replay_log=Says((at("events", event="rebalance-completed"),), (at("events", suspicious="true"),)),
        verify=Says((at("groups", verdict="same"),), (at("groups", verdict="differs"),)),
        also=tuple(("doctor", Says((), (error,), answer=look, hurried=True)) for look in looks),
    )
