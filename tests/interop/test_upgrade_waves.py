"""`upgrade run` with real clients: three waves, a group that fails in the second, a kill in each step."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sampled import in_full

from .conftest import Case
from .driver import Client, Member, settle
from .test_rolling_deployments import records
from .verifying import kgroup
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PARTITIONS, SIZE = 6, 2
STEPS = ("plan", "move", "watch", "check")
RULES = "{observe: 4s, stuck_after: 12s, unowned: 2m}"
HOOK = "cat > told.draft && mv told.draft told && while [ -e told ]; do sleep 0.05; done"


class Deployments:
    """Groups of Java consumers, and what deploys them when the hook says so."""

    def __init__(self, case: Case, client: Client, folder: Path, *, commits: bool = True) -> None:
        self.case, self.client, self.folder, self.commits = case, client, folder, commits
        self.topic = case.topic(PARTITIONS)
        self.members: dict[str, list[Member]] = {}
        self.fails: set[str] = set()
        self.deployed: list[list[str]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def fill(self, *names: str) -> list[str]:
        """Start classic groups; their ids."""
        for group in (f"{self.case.group}-{name}" for name in names):
            self.members[group] = [self._start(group, "classic") for _ in range(SIZE)]
        for members in self.members.values():
            settle(members, self.everything, 3)
            reads = (lambda of=members: all(m.state().read for m in of)) if self.commits else (lambda: True)
            eventually(reads, what="records are read")
        self._thread.start()
        return list(self.members)

    @property
    def everything(self) -> set[tuple[str, int]]:
        return self.case.partitions(self.topic, PARTITIONS)

    def roll(self, group: str, protocol: str) -> None:
        """Restart the group's members one after the other."""
        for seat in range(SIZE):
            self.members[group][seat].close()
            self.members[group][seat] = self._start(group, protocol)
            settle(self.members[group], self.everything, 3)

    def _start(self, group: str, protocol: str) -> Member:
        member = self.client.start(
            self.case.server.bootstrap, group, self.topic, protocol=protocol, commits=self.commits
        )
        self.case.members.append(member)
        return member

    def _serve(self) -> None:
        while not self._over.wait(0.05):
            if not (self.folder / "told").exists():
                continue
            told = json.loads((self.folder / "told").read_text())
            names = [group["group_id"] for group in told["groups"]]
            self.deployed.append(names)
            for name in names:
                self.roll(name, "classic" if name in self.fails else "consumer")
            (self.folder / "told").unlink(missing_ok=True)

    def close(self) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        gone = [m for m in self.case.members if all(m not in of for of in self.members.values())]
        for member in gone:
            self.case.members.remove(member)


@pytest.fixture
def deployments(
    case: Case, java_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployments]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Deployments(case, java_client, tmp_path)
    with records(case, made.topic):
        yield made
        made.close()


def written(folder: Path, *waves: list[str], rules: str = RULES) -> str:
    path = folder / "waves.yaml"
    hook = ["sh", "-c", f"cd {shlex.quote(str(folder))} && {HOOK}"]
    listed = [{"name": f"wave-{n}", "groups": groups} for n, groups in enumerate(waves, 1)]
    path.write_text(f"hook: {json.dumps(hook)}\nrules: {rules}\nwaves: {json.dumps(listed)}\n")
    return str(path)


def types(case: Case, groups: list[str]) -> list[str]:
    return [str(case.describe(group)["type"]) for group in groups]


def run(case: Case, waves: str, *more: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "kgroup.cli.app", "upgrade", "run", waves, "--execute", *more]
    done = subprocess.run(
        [*command, "-b", case.server.bootstrap, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["data"]


@in_full("tests/unit/admin/test_migrate_run.py has waves that fail, on an embedded cluster")
def test_a_group_that_fails_in_the_second_of_three_waves(deployments: Deployments, tmp_path: Path) -> None:
    case = deployments.case
    groups = deployments.fill("a", "b", "c", "d")
    deployments.fails = {groups[2]}
    waves = written(tmp_path, groups[:1], groups[1:3], groups[3:])
    code, told = run(case, waves)
    assert (code, [wave["step"] for wave in told["waves"]]) == (8, ["done", "watch", "waiting"]), told
    assert [(s["why"], s["group_id"]) for s in told["waves"][1]["stops"]] == [("stuck", groups[2])]
    assert types(case, groups) == ["Consumer", "Consumer", "Classic", "Classic"]
    assert {c["status"] for g in told["waves"][0]["groups"] for c in g["checks"]} == {"ok"}, told["waves"][0]
    undo = shlex.split(told["waves"][1]["groups"][0]["back"])
    assert undo[:4] == ["kgroup", "downgrade", "execute", groups[1]]
    code, plan = kgroup("downgrade", "plan", groups[1], "-b", case.server.bootstrap)
    assert (code, plan["verdict"]) == (0, "ready")
    deployments.fails = set()
    deployments.roll(groups[2], "consumer")
    code, told = run(case, waves)
    assert (code, [wave["step"] for wave in told["waves"]]) == (0, ["done"] * 3), told
    assert types(case, groups) == ["Consumer"] * 4
    assert deployments.deployed == [groups[:1], groups[1:3], groups[3:]]


@pytest.mark.sampled_on("kgroup")
def test_killed_in_each_step_it_resumes(deployments: Deployments, tmp_path: Path) -> None:
    """SIGKILL in plan, move, watch and check of one wave: its hook runs once, and the next wave follows.

    On a busy machine a step may be over before it is seen: the kill then comes in the next.
    """
    case = deployments.case
    groups = deployments.fill("a", "b")
    waves = written(tmp_path, groups[:1], groups[1:], rules=RULES.replace("12s", "1m"))
    state = tmp_path / "waves.yaml.state.json"
    command = [sys.executable, "-m", "kgroup.cli.app", "upgrade", "run", waves, "--execute"]
    more: tuple[str, ...] = ()
    for step in STEPS:
        process = subprocess.Popen(
            [*command, *more, "-b", case.server.bootstrap], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            while process.poll() is None and not reached(state, step, deployments):
                time.sleep(0.005)
        finally:
            process.kill()
            _, said = process.communicate()
        assert process.returncode == -9, (step, said, state.read_text())
        if now_in(state) != "move":
            more = ()
        else:
            code, told = run(case, waves)
            assert (code, told["waves"][0]["stops"][0]["reason"]) == (5, "HOOK_CUT_OFF")
            more = ("--no-hook-again",)
    code, told = run(case, waves)
    assert (code, [wave["step"] for wave in told["waves"]]) == (0, ["done"] * 2), told
    assert deployments.deployed == [groups[:1], groups[1:]]
    assert types(case, groups) == ["Consumer"] * 2


def now_in(state: Path) -> str:
    """The step of the first wave."""
    step: str = json.loads(state.read_text())["waves"][0]["step"]
    return step


def reached(state: Path, step: str, deployments: Deployments) -> bool:
    """Whether the first wave is in this step, or beyond; of `move`, whether its hook deploys."""
    if not state.exists() or (now := now_in(state)) not in STEPS:
        return False
    return STEPS.index(now) >= STEPS.index(step) and (now != "move" or bool(deployments.deployed))
