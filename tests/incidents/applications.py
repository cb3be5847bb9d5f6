"""Kafka Streams and Kafka Connect, when an instance or a worker dies."""

from __future__ import annotations

from tests.interop.foreign.workers import Workers
from tests.interop.streams_incident import Application

from .playing import incident
from .scene import Scene
from .truth import HEALTHY, Next, Recorded, Says, Truth, at, blamed, event, finding


def _three_instances(scene: Scene, protocol: str) -> None:
    """An application grows from one instance to three, and one of them is killed."""
    source = scene.topic(2, "in")
    scene.topic(1, "out")
    scene.flow(source, 2)
    app = Application(scene.server, scene.group, scene.folder, protocol)
    scene.at_end(lambda: [app.end(name, kill=True) for name in list(app.instances)])
    app.start("s0")
    app.settle({"s0": 4})
    app.start("s1")
    app.settle({"s0": 2, "s1": 2})
    app.start("s2")
    scene.until(
        lambda: sum(len(each.call("state")["active"]) for each in app.instances.values()) == 4, "4", 90
    )
    scene.sleep(3)
    app.end("s1", kill=True)
    scene.until(
        lambda: sum(len(each.call("state")["active"]) for each in app.instances.values()) == 4, "4", 90
    )


@incident(9)
def streams_scaled_and_killed_classic(scene: Scene) -> Truth:
    """A classic Streams application goes from one instance to three, and one is killed."""
    _three_instances(scene, "classic")
    return Truth(
        who="s1, one of three instances",
        what="killed; the other two have its tasks",
        when="a session after its last heartbeat",
        why="it was killed",
        describe=Says((at("groups", state="Stable"),), ("s1-StreamThread",)),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says((blamed("rebalance", "s1|hand-over.*s1"),)),
        replay_log=Says((event("member-left-or-expired", detail__cause="s1"),)),
        cause="s1-StreamThread[^;]*(left or expired|is gone)",
        record=Recorded(r"^group app\d\d$", "KG310|KG112", passes=True),
    )


@incident(9)
def streams_scaled_and_killed_kip1071(scene: Scene) -> Truth:
    """A Streams application of the streams protocol goes from one instance to three, and one is killed."""
    _three_instances(scene, "streams")
    return Truth(
        who="s1, one of three instances",
        what="killed; the other two have its tasks",
        when="a session after its last heartbeat",
        why="it was killed",
        describe=Says(
            (at("groups", type="streams", state="Stable"),), (at("groups.members", client_id="^s1-"),)
        ),
        lag=Says((at("groups", unknown_partitions="^0$"),)),
        doctor=HEALTHY,
        blame=Says((blamed("rebalance", "s1"),)),
        replay_log=Says((event("member-left-or-expired", detail__cause="s1"),)),
        cause="s1-StreamThread[^;]*(left or expired|is gone)",
    )


@incident(10)
def connect_worker_killed(scene: Scene) -> Truth:
    """One of two Connect workers is killed; its tasks are held back for scheduled.rebalance.max.delay.ms."""
    topic = scene.topic(2)
    scene.flow(topic, 2)
    workers = Workers(scene.server.bootstrap, scene.group, "sessioned", scene.folder)
    workers.settings["scheduled.rebalance.max.delay.ms"] = "60000"
    scene.at_end(workers.close)
    for name in ("w0", "w1"):
        workers.start(name)
    names = [f"{scene.group}-sink{number}" for number in range(2)]
    for name in names:
        sink = {"connector.class": "FileStreamSink", "topics": topic, "file": str(scene.folder / name)}
        workers.create(name, **sink, **{"tasks.max": "1"})
    for _ in range(5):
        workers.shares(names)
        workers.kill("w1")
        scene.until(lambda: len(scene.members()) == 1, "one worker is left")
        scene.sleep(3)
        # A leader that missed a generation has nothing to compare with, and gives the work out at once.
        if workers.runs_nowhere(names):
            break
        workers.start("w1")
    return Truth(
        who="w1, one of two Connect workers",
        what="killed; its connector and task run nowhere for a minute",
        when="since its session ended",
        why="the leader keeps the work back for scheduled.rebalance.max.delay.ms",
        describe=Says((at("groups", state="Stable", protocol_type="connect"),)),
        lag=Says((), (at("groups", total_lag="^0$"),)),
        doctor=Says((finding("warn|error", r"scheduled\.rebalance\.max\.delay|held back|run nowhere"),)),
        blame=Says((blamed("rebalance", "w1"),)),
        replay_log=Says((event("member-left-or-expired", detail__cause="w1"),)),
        cause=r"w1[^\"]*(left|expired|gone)|(held back|run nowhere)[^\"]*w1",
        next=Next(
            "start the workers again", lambda _: workers.shares(names), by_hand=lambda _: workers.start("w1")
        ),
        record=Recorded(r"^group connect-app\d\d-sink\d$", "KG112|KG310", passes=True),
    )
