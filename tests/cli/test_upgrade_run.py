"""`kgroup upgrade run`: waves that move, stop, and resume, on a cluster of ours over TCP."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgroup.admin.journal import Journal
from kgroup.admin.read.describe import describe
from kgroup.cli.exit_codes import ExitCode
from tests.cli.live import SLOW_MACHINE_S, Client
from tests.ran import Ran, document

_numbers = itertools.count()
QUICK = {"observe": "0s", "stuck_after": "200ms", "lag_growth": None, "commits": False}
TELL = """
cat > told.draft && env | grep ^KGROUP_HOOK_ > variables && mv told.draft told
while [ -e told ]; do sleep 0.01; done
"""


class Mover:
    """What a hook deploys: clients of the consumer protocol for the members of a wave's groups.

    The hook itself only says that it runs, and waits: members come from a thread of the test.
    """

    def __init__(self, cluster: Client, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.stay: tuple[str, ...] = ()
        self.told: list[dict[str, Any]] = []
        self.hook = ["sh", "-c", f"cd {shlex.quote(str(folder))}\n{TELL}"]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _serve(self) -> None:
        client = Client(self.cluster.bootstrap)
        while not self._over.wait(0.01):
            if (self.folder / "told").exists():
                self.told.append(json.loads((self.folder / "told").read_text()))
                for group in self.told[-1]["groups"]:
                    for seat in range(0 if group["group_id"] in self.stay else group["members"]):
                        client.consumer_member(group["group_id"], "orders", f"m-{seat}")
                (self.folder / "told").unlink()
        client.close()


@pytest.fixture
def mover(cluster, tmp_path):
    made = Mover(cluster, tmp_path)
    yield made
    made.close()


@pytest.fixture
def prefix() -> str:
    return f"waves-{next(_numbers)}"


def live(cluster: Client, name: str) -> str:
    cluster.classic_group(name, "orders", {"m-0": [0, 1, 2], "m-1": [3, 4, 5]})
    return name


def written(folder: Path, *groups: list[str], **shared: object) -> str:
    """A file of waves, and its name."""
    path = folder / "waves.yaml"
    rules = {**QUICK, **shared.pop("rules", {})}  # type: ignore[dict-item]
    waves = [{"name": f"wave-{number}", "groups": list(each)} for number, each in enumerate(groups, 1)]
    path.write_text(yaml.safe_dump({**shared, "rules": rules, "waves": waves}))
    return str(path)


def test_three_waves_with_a_hook(on_cluster, cluster, prefix, tmp_path, mover):
    """Empty groups are converted, live ones move by the hook; the journal has what was done."""
    groups = [live(cluster, f"{prefix}-{name}") for name in "ab"]
    cluster.commit(f"{prefix}-idle", "orders", {0: 5})
    waves = written(tmp_path, groups[:1], groups[1:], [f"{prefix}-idle"], hook=mover.hook)
    told = document(on_cluster("upgrade", "run", waves, "-o", "json"), "upgrade run")
    assert [(wave["step"], wave["groups"][0]["verdict"]) for wave in told["waves"]] == [
        ("waiting", "ready")
    ] * 3
    assert not told["executed"] and not (tmp_path / "waves.yaml.state.json").exists()
    argv = ("upgrade", "run", waves, "--execute", "--interval", "10ms")
    told = document(on_cluster(*argv, "-o", "json"), "upgrade run")
    assert [wave["step"] for wave in told["waves"]] == ["done"] * 3
    assert mover.told[0]["groups"] == [
        {"group_id": groups[0], "state": "Stable", "members": 2, "verdict": "ready"}
    ]
    variables = dict(line.split("=", 1) for line in (tmp_path / "variables").read_text().splitlines())
    assert json.loads(variables["KGROUP_HOOK_GROUPS"]) == mover.told[-1]["groups"]
    assert (variables["KGROUP_HOOK_WAVE"], variables["KGROUP_HOOK_ATTEMPT"]) == ("wave-3", "1")
    first = told["waves"][0]["groups"][0]
    assert (first["members_before"], first["moved"], first["type"]) == (2, 2, "consumer")
    assert {check["status"] for check in first["checks"]} == {"ok", "not_judged"}
    assert shlex.split(first["back"]) == [
        "kgroup",
        "downgrade",
        "execute",
        groups[0],
        f"--bootstrap-server={cluster.bootstrap}",
    ]
    entries = Journal.default().entries()
    assert [entry.command for entry in entries] == ["upgrade run"] * 3
    assert [result["result"] for result in entries[0].results] == ["done"]
    assert entries[2].results[0]["offsets_changed"] == []
    assert entries[2].before["offsets"][f"{prefix}-idle"][0][:3] == ["orders", 0, 5]
    again = document(on_cluster(*argv, "-o", "json"), "upgrade run")
    assert [wave["step"] for wave in again["waves"]] == ["done"] * 3
    assert len(Journal.default().entries()) == 3


def test_a_group_that_does_not_move_stops_the_second_wave_and_the_mend_resumes_it(
    on_cluster, cluster, prefix, tmp_path, mover
):
    names = [live(cluster, f"{prefix}-{name}") for name in "abcd"]
    stays = names[2]
    mover.stay = (stays,)
    waves = written(tmp_path, names[:1], names[1:3], names[3:], hook=mover.hook)
    argv = ("upgrade", "run", waves, "--execute", "--interval", "10ms", "-o", "json")
    ran = on_cluster(*argv)
    told = document(ran, "upgrade run", ExitCode.BAD_VERDICT)
    assert [wave["step"] for wave in told["waves"]] == ["done", "watch", "waiting"]
    (stop,) = told["waves"][1]["stops"]
    assert (stop["why"], stop["group_id"]) == ("stuck", stays)
    assert "0 of 2 members moved" in stop["message"] and "2 of 2 to be restarted: m-0, m-1" in stop["message"]
    assert [group["back"] is not None for group in told["waves"][1]["groups"]] == [True, False]
    assert describe(cluster.admin, [names[3]]).groups[0].type == "classic"
    shown = on_cluster("upgrade", "run", waves)
    assert shown.code == ExitCode.OK and "resumes with wave-2" in shown.out
    for seat in range(2):
        cluster.consumer_member(stays, "orders", f"m-{seat}")
    told = document(on_cluster(*argv), "upgrade run")
    assert [(wave["step"], wave["hook"]["attempt"]) for wave in told["waves"]] == [("done", 1)] * 3


def test_what_a_person_reads_of_a_stop(on_cluster, cluster, prefix, tmp_path, mover):
    names = [live(cluster, f"{prefix}-{name}") for name in "ab"]
    mover.stay = (names[1],)
    waves = written(tmp_path, names, hook=mover.hook)
    ran = on_cluster("upgrade", "run", waves, "--execute", "--interval", "10ms")
    assert ran.code == ExitCode.BAD_VERDICT
    assert f"undo: kgroup downgrade execute {names[0]} --bootstrap-server={cluster.bootstrap}" in ran.out
    assert f"downgrade execute {names[1]}" not in ran.out
    assert "journal j-0001" in ran.out and "wave-1  watch" in ran.out
    assert re.search(rf"{names[1]}: nothing has changed for \d+ s: 0 of 2 members moved", ran.err)


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        ("exit 3", "exit code 3"),
        (["/no/such/program"], "it cannot be started: No such file or directory"),
        ("kill -9 $$", "ended by SIGKILL"),
        ("sleep 60", "it did not end within 0.2 s, and was ended"),
    ],
)
def test_a_hook_that_fails_stops_the_wave_and_runs_again(
    hook, why, on_cluster, cluster, prefix, tmp_path, mover
):
    name = live(cluster, prefix)
    waves = written(tmp_path, [name], hook=hook, hook_timeout="200ms" if "60" in hook else "1m")
    argv = ("upgrade", "run", waves, "--execute", "--interval", "10ms", "-o", "json")
    told = document(on_cluster(*argv), "upgrade run", ExitCode.FAILED)
    (stop,) = told["waves"][0]["stops"]
    assert stop["why"] == "hook" and why in stop["message"]
    (entry,) = Journal.default().entries()
    assert (entry.results[0]["error_code"], entry.results[0]["effect"]) == ("HOOK_FAILED", why)
    written(tmp_path, [name], hook=mover.hook)
    told = document(on_cluster(*argv), "upgrade run")
    assert (told["waves"][0]["step"], told["waves"][0]["hook"]["attempt"]) == ("done", 2)


def test_without_a_hook_it_watches_what_others_deploy(on_cluster, cluster, prefix, tmp_path, mover):
    name = live(cluster, prefix)
    waves = written(tmp_path, [name])
    argv = ("upgrade", "run", waves, "--execute", "--interval", "10ms", "-o", "ndjson")
    assert on_cluster(*argv).code == ExitCode.BAD_VERDICT
    for seat in range(2):
        cluster.consumer_member(name, "orders", f"m-{seat}")
    ran = on_cluster(*argv)
    assert ran.code == ExitCode.OK
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["step"] for line in lines][-1] == "done"
    assert {line["schema"] for line in lines} == {"kgroup/upgrade-run@1"}
    assert Journal.default().entries() == ()


def test_what_is_blocked_or_unknown_stops_before_anything_moves(on_cluster, cluster, prefix, tmp_path, mover):
    name = live(cluster, prefix)
    marker = tmp_path / "deployed"
    waves = written(tmp_path, [name, f"{prefix}-absent"], hook=["touch", str(marker)])
    argv = ("upgrade", "run", waves, "--execute", "--interval", "10ms", "-o", "json")
    told = document(on_cluster(*argv), "upgrade run", ExitCode.NOT_FOUND)
    assert [(s["why"], s["reason"]) for s in told["waves"][0]["stops"]] == [("unknown", "GROUP_ID_NOT_FOUND")]
    cluster.commit(f"{prefix}-ahead", "orders", {0: 5})
    live(cluster, f"{prefix}-ahead")
    written(tmp_path, [f"{prefix}-ahead"], hook=["touch", str(marker)], rules={"lag_growth": 5})
    told = document(on_cluster(*argv), "upgrade run", ExitCode.PARTIAL)
    assert "its lag is unknown" in told["waves"][0]["stops"][0]["message"]
    assert not marker.exists() and Journal.default().entries() == ()


def test_done_waves_cannot_change_and_others_can(on_cluster, cluster, prefix, tmp_path, mover):
    names = [live(cluster, f"{prefix}-{name}") for name in "abc"]
    mover.stay = (names[2],)
    waves = written(tmp_path, names[:1], names[1:], hook=mover.hook)
    argv = ("upgrade", "run", waves, "--execute", "--interval", "10ms", "-o", "json")
    assert on_cluster(*argv).code == ExitCode.BAD_VERDICT
    written(tmp_path, names[:2], names[2:])
    assert on_cluster(*argv).code == ExitCode.REFUSED
    written(tmp_path, names[:1], names[1:2])
    told = document(on_cluster(*argv), "upgrade run")
    assert [wave["step"] for wave in told["waves"]] == ["done", "done"]


def test_one_run_at_a_time(on_cluster, cluster, prefix, tmp_path, mover):
    """The hook itself is a second run of the same waves."""
    name = live(cluster, prefix)
    path = tmp_path / "waves.yaml"
    words = [
        sys.executable,
        "-m",
        "kgroup",
        "upgrade",
        "run",
        str(path),
        "--execute",
        "-b",
        cluster.bootstrap,
    ]
    waves = written(tmp_path, [name], hook=f"{shlex.join(words)}; test $? = 4")
    told = on_cluster("upgrade", "run", waves, "--execute", "--interval", "10ms", "-o", "json")
    assert document(told, "upgrade run", ExitCode.BAD_VERDICT)["waves"][0]["hook"]["exit_code"] == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_hook_and_the_run_with_the_state_stored(number, code, cluster, prefix, tmp_path):
    name = live(cluster, prefix)
    waves = written(tmp_path, [name], hook="echo $$ > pid.draft; mv pid.draft pid; exec sleep 600")
    command = [sys.executable, "-m", "kgroup", "upgrade", "run", waves, "--execute", "-o", "json"]
    process = subprocess.Popen(
        [*command, "-b", cluster.bootstrap],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not (tmp_path / "pid").exists():
        time.sleep(0.01)
    process.send_signal(number)
    out, said = process.communicate(timeout=SLOW_MACHINE_S)
    told = document(Ran(process.returncode, out, said), "upgrade run", code)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    (wave,) = told["waves"]
    assert [stop["why"] for stop in wave["stops"]] == ["interrupted"]
    assert wave["hook"]["failure"] == "it was ended with the run"
    assert json.loads((tmp_path / "waves.yaml.state.json").read_text())["waves"] == [wave]
    (entry,) = Journal.default().entries()
    assert entry.results[0]["error_code"] == "INTERRUPTED"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("waves: 3", "there is no list of waves"),
        ("- a", "is not a mapping"),
        ("waves: [{groups: [7]}]", "the group 7 is not a text"),
        ("waves: [{groups: []}]", "wave wave-1 has no list of groups"),
        ("waves: [{groups: [a]}, {groups: [a]}]", "the group a is in the waves twice"),
        ("waves: [{name: x, groups: [a]}, {name: x, groups: [b]}]", "two waves have the name x"),
        ("waves: [{groups: [a], rule: {}}]", "the key 'rule' is unknown"),
        ("waves: [{groups: [a], rules: {observe: 30}}]", "observe: 30 is no duration"),
        ("waves: [{groups: [a], rules: {observe: -1s}}]", "observe: '-1s' is not a duration"),
        ("waves: [{groups: [a], rules: {stuck_after: null}}]", "stuck_after: None is no duration"),
        ("waves: [{groups: [a], rules: {lag_growth: true}}]", "lag_growth: True is no value of this rule"),
        ("waves: [{groups: [a], hook: {}}]", "hook: {} is no command"),
        ("waves: [", "is not valid YAML"),
        ("\x00", "is not valid YAML"),
    ],
)
def test_a_file_that_makes_no_sense(text, said, on_cluster, tmp_path):
    path = tmp_path / "waves.yaml"
    path.write_text(text)
    ran = on_cluster("upgrade", "run", str(path))
    assert (ran.code, said in ran.err) == (ExitCode.USAGE, True), ran.err
    assert "waves.yaml" in ran.err


def test_a_state_that_is_not_one(on_cluster, cluster, prefix, tmp_path, mover):
    waves = written(tmp_path, [live(cluster, prefix)])
    state = tmp_path / "waves.yaml.state.json"
    for text in ("{", "[]", '{"format": 2}', '{"format": 1, "checksum": 1, "cluster_id": "x", "waves": []}'):
        state.write_text(text)
        ran = on_cluster("upgrade", "run", waves)
        assert ran.code == ExitCode.FAILED and "is not the state of this run" in ran.err
        assert "--state" in ran.err


class TestGenerated:
    def test_the_least_risky_group_is_first(self, on_cluster, cluster, prefix, tmp_path, mover):
        for name in "abc":
            live(cluster, f"{prefix}-{name}")
        cluster.commit(f"{prefix}-idle", "orders", {0: 5})
        cluster.consumer_member(f"{prefix}-moved", "orders", "m-0")
        path = tmp_path / "made.yaml"
        argv = ("upgrade", "plan", f"{prefix}-*", "--waves", str(path))
        assert on_cluster(*argv, "--wave-size", "2").code == ExitCode.OK
        made = yaml.safe_load(path.read_text())
        assert [wave["groups"] for wave in made["waves"]] == [
            [f"{prefix}-idle"],
            [f"{prefix}-a", f"{prefix}-b"],
            [f"{prefix}-c"],
        ]
        assert f"# in no wave: {prefix}-moved: already" in path.read_text()
        assert on_cluster("upgrade", "run", str(path)).code == ExitCode.OK
        again = on_cluster(*argv)
        assert again.code == ExitCode.FAILED and "is there already" in again.err

    def test_what_makes_no_sense_is_refused(self, on_cluster, cluster, prefix, tmp_path, mover):
        cluster.consumer_member(f"{prefix}-moved", "orders", "m-0")
        path = str(tmp_path / "made.yaml")
        assert on_cluster("upgrade", "plan", f"{prefix}-*", "--wave-size", "2").code == ExitCode.USAGE
        assert on_cluster("upgrade", "plan", f"{prefix}-moved", "--waves", path).code == ExitCode.REFUSED
        assert not Path(path).exists()
