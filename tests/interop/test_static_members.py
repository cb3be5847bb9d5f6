"""From dynamic to static members (KIP-345, Upgrade process), by the steps of docs/upgrades.md, in Java."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from .conftest import Case
from .driver import Client, Member, settle
from .verifying import kgroup

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
SIZE = 2


def test_the_plan_leads_from_dynamic_to_static(case: Case, java_client: Client) -> None:
    """SM-52, SM-73: the plan's steps, a roll with `wait` at it, and a restart that moves nothing."""
    topic = case.topic()
    everything = case.partitions(topic)

    def join(**options: Any) -> Member:
        return case.join(java_client, topic, **options)

    def plan() -> tuple[str, dict[str, dict[str, Any]]]:
        where = ("-b", case.server.bootstrap)
        code, told = kgroup("upgrade", "plan", case.group, "--static", "--read-log", *where)
        assert code == 0, told
        return told["verdict"], {check["code"]: check for check in told["checks"]}

    members = [join() for _ in range(SIZE)]
    settle(members, everything, 2)
    verdict, checks = plan()
    assert (verdict, len(checks["static_ids"]["evidence"]["dynamic"])) == ("ready", SIZE)
    assert checks["session_timeout"]["evidence"]["restarts_ms"] == []
    case.close(members[1])
    settle(members[:1], everything)
    members[1] = join()
    settle(members, everything, 2)
    _, checks = plan()
    session = checks["session_timeout"]
    assert session["status"] == "warn" and session["message"].endswith("; the members use 10 s now")
    assert len(session["evidence"]["restarts_ms"]) == 1 and ": 45 s fits" in session["message"]
    command = [sys.executable, "-m", "kgroup.cli.app", "wait", case.group, "--for", "static"]
    waiting = subprocess.Popen([*command, "-b", case.server.bootstrap], stdout=subprocess.DEVNULL)
    try:
        for seat in range(SIZE):
            assert waiting.poll() is None
            case.close(members[seat])
            members[seat] = join(instance=f"{case.group}-{seat}", session_ms=45_000)
            settle(members, everything, 2)
        assert waiting.wait(30) == 0
    finally:
        waiting.kill()
        waiting.wait()
    verdict, checks = plan()
    assert (verdict, checks["session_timeout"]["status"]) == ("already", "ok")
    before = [member.state() for member in members]
    case.close(members[0])
    members[0] = join(instance=f"{case.group}-0", session_ms=45_000)
    after = settle(members, everything, 2)
    assert [state.generation for state in after] == [state.generation for state in before]
    assert [state.assignment for state in after] == [state.assignment for state in before]
