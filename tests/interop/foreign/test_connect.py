"""Two Kafka Connect workers, each protocol between them; one is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.sampled import FULL, in_full

from ..waiting import eventually
from .conftest import Play
from .programs import Run
from .workers import Workers

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
PROTOCOLS = ("sessioned", "compatible", "eager") if FULL else ("sessioned",)


def through_files(run: Run, protocol: str, folder: Path) -> None:
    topics = [run.topic(1, f"-{number}") for number in range(2)]
    sources, sinks = ([folder / f"{kind}{number}" for number in range(2)] for kind in ("source", "sink"))
    workers = Workers(run.server.bootstrap, run.name, protocol, folder)
    wanted: list[set[str]] = [set(), set()]

    def write(since: int) -> None:
        for number, source in enumerate(sources):
            lines = [f"{number}-{line}" for line in range(since, since + 20)]
            wanted[number].update(lines)
            with source.open("a") as file:
                file.writelines(f"{line}\n" for line in lines)

    def arrived() -> bool:
        return [set(sink.read_text().split()) for sink in sinks if sink.exists()] == wanted

    try:
        workers.start("w0")
        workers.start("w1")
        write(0)
        for number, topic in enumerate(topics):
            source = {"connector.class": "FileStreamSource", "topic": topic, "file": str(sources[number])}
            sink = {"connector.class": "FileStreamSink", "topics": topic, "file": str(sinks[number])}
            workers.create(f"{run.name}-source{number}", **{**source, "tasks.max": "1"})
            workers.create(f"{run.name}-sink{number}", **{**sink, "tasks.max": "1"})
        names = [f"{run.name}-{kind}{number}" for kind in ("source", "sink") for number in range(2)]
        run.tell("shares", [sum(each) for each in workers.shares(names)])
        run.refused("no consumers", "admin.describe", group=run.name)
        eventually(arrived, 180, "all lines arrived")
        workers.kill("w1")
        write(20)
        run.tell("shares of the one left", workers.shares(names))
        eventually(arrived, 180, "lines arrive without the killed worker")
        workers.start("w1")
        run.tell("shares with the one that is back", [sum(each) for each in workers.shares(names)])
        write(40)
        eventually(arrived, 180, "lines arrive through both again")
    finally:
        workers.close()
    read = [run.call("read", topic=topic)["rows"] for topic in topics]
    run.tell("lines in the topics", [sorted(Counter(row[3] for row in rows)) for rows in read])
    offsets = [run.call("admin.offsets", group=f"connect-{run.name}-sink{number}") for number in range(2)]
    ends = [len(rows) for rows in read]
    committed = [found[f"{topic}-0"][0] for found, topic in zip(offsets, topics, strict=True)]
    run.tell("the sinks committed all", [have == end for have, end in zip(committed, ends, strict=True)])
    run.tell("listed", [type(run.call("admin.list").get(f"connect-{run.name}-sink{n}")) for n in range(2)])


@in_full("test_described and test_rolling_deployments have workers that come and go")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_workers_share_and_take_over(play: Play, tmp_path: Path, protocol: str) -> None:
    def connect(run: Run) -> None:
        folder = tmp_path / run.server.kind
        folder.mkdir()
        through_files(run, protocol, folder)

    play(connect, "4.0.2")
