"""Real consumers fetch in sessions: what does not change does not travel, and every record arrives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from kgroup.broker.fetch_sessions import Session
from kgroup.broker.server import Server
from kgroup.runtime.cluster import Cluster

from .conftest import SETTINGS
from .driver import Client, Driver, settle
from .kafka import DEFAULTS
from .kgroup_server import NOT_OURS
from .waiting import eventually

pytestmark = pytest.mark.interop

INCREMENTAL = 5  # requests in a session; each carries the next epoch


@pytest.fixture
def ours() -> Iterator[Server]:
    """Our broker in this process, so that its sessions can be looked at."""
    config = {key: value for key, value in {**DEFAULTS, **SETTINGS}.items() if key not in NOT_OURS}
    cluster = Cluster(None, config=config, offsets_partitions=1)
    running, stopped = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    made = Server(cluster)

    async def serve() -> None:
        await made.start()
        running.set()
        await stopped.wait()
        await made.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    running.wait(10)
    yield made
    loop.call_soon_threadsafe(stopped.set)
    thread.join(10)
    loop.close()
    cluster.close()


@pytest.mark.parametrize("kind", ["java", "franz-go"])
def test_sessions_go_on(
    ours: Server, kind: str, clients: Callable[[str], Client], drivers: Callable[[str], Driver]
) -> None:
    host, port = ours.cluster.endpoints[0]
    bootstrap = f"{host}:{port}"
    admin = drivers("java")
    admin.call("admin.create_topic", bootstrap=bootstrap, topic="t", partitions=4)
    member = clients(kind).start(bootstrap, "g", "t")
    try:
        settle([member], {("t", p) for p in range(4)})
        sent = []
        for number in range(8):
            rows = [[number % 4, f"v{number}"]]
            admin.call("admin.produce", bootstrap=bootstrap, topic="t", rows=rows)
            sent.append(f"v{number}")
            eventually(lambda sent=sent: set(sent) <= {each[-1] for each in member.records()})

        def sessions() -> list[Session]:
            return list(ours.dispatcher.sessions(0))

        lived = eventually(lambda: [each for each in sessions() if each.epoch > INCREMENTAL])
        assert {len(each.partitions) for each in lived} == {4}
    finally:
        member.close()
