"""The incident of tests/data/incidents that needs share consumers: a queue's life, on Kafka 4.4.0.

    python -m tests.interop.share_incident

Kept are the segments of both topics in which a share group leaves records, and the topics' ids.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from kgroup.domain import uuid_bytes
from kgroup.history.sources.folders import LocalFolder
from kgroup.history.sources.logs import write_topics_file

from . import toolchain
from .driver import Driver
from .jvm import java
from .kafka import SHARED, RealKafka
from .record_incidents import TARGET
from .test_share_groups import RECORDS, Scene

LIMIT = 3
"""How often a record is delivered at most."""
POISON = 7
"""The record that no member ever finishes."""


def share_group(scene: Scene) -> None:
    """A queue of 30 records: 5 is rejected, 7 is released until the limit of 3, then a reset, a deletion."""
    scene.open("first")
    acquired = scene.poll("first").keys()
    scene.done("first", [0, 1, 2, 3, 4])
    scene.done("first", [5], "REJECT")
    scene.done("first", sorted(acquired - {0, 1, 2, 3, 4, 5}), "RELEASE")
    scene.open("second")
    for _ in range(LIMIT - 1):
        again = scene.poll("first").keys()
        scene.done("first", sorted(again - {POISON}))
        scene.done("first", [POISON], "RELEASE")
    scene.driver.call("share.poll", name="second", ms=2000)
    for name in ("second", "first"):
        scene.driver.call("share.close", name=name)
    scene.tool("--reset-offsets", "--to-earliest", "--topic", scene.topic, "--execute")
    scene.open("third")
    scene.done("third", sorted(scene.poll("third")))
    scene.driver.call("share.close", name="third")
    scene.tool("--delete-offsets", "--topic", scene.topic)
    scene.tool("--delete")


def record(to: Path) -> None:
    """Run the incident and keep its segments in a folder, in place of what is there."""
    broker = RealKafka({**SHARED, "group.share.delivery.count.limit": str(LIMIT)})
    broker.kafka = "4.4.0"
    with broker, tempfile.TemporaryDirectory() as logs:
        command = java("kgroup.interop.Driver", classpath=toolchain.driver_classpath())
        driver = Driver(command, Path(logs) / "stderr.log")
        try:
            scene = Scene(broker, driver, "jobs", "queue")
            scene.prepare()
            share_group(scene)
        finally:
            driver.close()
        described = broker.tool("kafka-topics", "--describe", "--topic", scene.topic).stdout.split()
        shutil.rmtree(to, ignore_errors=True)
        for segment in sorted(broker.data_dir.glob("__*-*/*.log")):
            topic = segment.parent.name.rpartition("-")[0]
            if topic in ("__consumer_offsets", "__share_group_state") and segment.stat().st_size:
                (to / segment.parent.name).mkdir(parents=True)
                shutil.copy(segment, to / segment.parent.name)
        write_topics_file(
            LocalFolder(to), {uuid_bytes(described[described.index("TopicId:") + 1]): scene.topic}
        )
    about = {"group": scene.group, "script": share_group.__doc__, "records": RECORDS}
    (to / "incident.json").write_text(json.dumps(about, indent=2) + "\n")


if __name__ == "__main__":
    record(TARGET / "share-group")
