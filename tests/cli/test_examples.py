"""The runbooks in examples/ do what they say, on a cluster of ours."""

import glob
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kgroup.admin.change.delete import delete_groups
from tests.cli.committed import commit_fully, committed, offsets
from tests.cli.hook import hook
from tests.cli.logs import append
from tests.sampled import sampled

EXAMPLES = Path(__file__).parents[2] / "examples"
MINE = {"after-rollout.sh", "blue-green.sh", "delete-stale-groups.sh", "lag-alert.sh", "replay-since.sh"}
_numbers = itertools.count()


@pytest.fixture
def group(cluster):
    """An empty group at 3 of 3 records, an hour apart, in the topic of its name."""
    name = f"example-{next(_numbers)}"
    cluster.create_topic(name, 1)
    now = int(time.time() * 1000)
    append(cluster, name, 0, ["x"] * 3, [now - hours * 3_600_000 for hours in (3, 2, 1)])
    commit_fully(cluster, name, name, {0: (3, 0, "mine")})
    return name


@pytest.fixture
def environment(cluster, tmp_path):
    """kgroup and this Python on the PATH, and folders of its own."""
    return {
        **{name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "KGROUP_BOOTSTRAP_SERVER": cluster.bootstrap,
    }


@pytest.fixture
def script(environment, tmp_path):
    """Runs an example."""

    def call(name, *argv, **more):
        return subprocess.run(
            [EXAMPLES / name, *argv],
            env={**environment, **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return call


def test_replay_since_and_back(script, cluster, group, on_cluster):
    before = committed(cluster, group)
    done = script("replay-since.sh", group, group, "PT2H30M", "INC-1")
    assert done.returncode == 0, done.stderr
    assert offsets(cluster, group) == {(group, 0): 1}
    assert committed(cluster, group)[group, 0][2].endswith("why=INC-1")
    back = done.stdout.splitlines()[-1].partition("kgroup ")[2].split()
    assert back == ["reset-offsets", "--undo", "j-0001", "--execute"]
    assert committed(cluster, group) != before


def test_replay_since_of_an_active_group(script, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0]})
    done = script("replay-since.sh", group, group, "PT2H", "why", WAIT="3s")
    assert (done.returncode, "is still Stable" in done.stderr) == (7, True)
    assert offsets(cluster, group) == {(group, 0): 3}


def test_replay_since_waits_for_the_readers(environment, cluster, group, on_cluster):
    cluster.classic_group(group, group, {"i-0": [0]})
    argv = [EXAMPLES / "replay-since.sh", group, group, "PT2H30M", "why"]
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True) as process:
        # The plan is refused; then it waits.
        assert any(f"for {group} to be empty" in line for line in process.stderr)
        assert on_cluster("remove-members", group, "--all", "--execute", "--yes").code == 0
        process.stderr.read()
    assert process.returncode == 0
    assert offsets(cluster, group) == {(group, 0): 1}


def test_lag_alert(script, cluster, group):
    with hook() as (url, taken):
        assert script("lag-alert.sh", group, "5m", url).returncode == 0
        assert taken == []
        commit_fully(cluster, group, group, {0: (1, 0, "")})
        late = script("lag-alert.sh", group, "5m", url)
        assert late.returncode == 8, late.stderr
        assert script("lag-alert.sh", "never-was", "5m", url).returncode == 3
        for dead in ("http://127.0.0.1:1/", "no address"):
            untold = script("lag-alert.sh", group, "5m", dead)
            assert (untold.returncode, len(untold.stderr.splitlines())) == (1, 1)
            assert f"{dead} was not told" in untold.stderr
    (((told),),) = taken
    assert (told["group_id"], told["total_lag"]) == (group, 2)
    assert told["max_time_lag_ms"] > 7_000_000


def test_blue_green(script, cluster, group, tmp_path):
    done = script("blue-green.sh", group, f"{group}-v2", str(tmp_path))
    assert done.returncode == 0, done.stderr + done.stdout
    assert committed(cluster, f"{group}-v2") == committed(cluster, group)
    assert json.loads((tmp_path / f"{group}.json").read_text())["schema"] == "kgroup/offsets-export@1"
    assert not (tmp_path / f"{group}-v2.json").exists()
    commit_fully(cluster, f"{group}-v2", group, {0: (1, 0, "before")})
    again = script("blue-green.sh", group, f"{group}-v2", str(tmp_path))
    assert (again.returncode, "cannot overwrite existing file" in again.stderr) == (1, True)
    assert offsets(cluster, f"{group}-v2") == {(group, 0): 1}
    second = tmp_path / "second"
    second.mkdir()
    assert script("blue-green.sh", group, f"{group}-v2", str(second)).returncode == 0
    (kept,) = json.loads((second / f"{group}-v2.json").read_text())["data"]["groups"]
    assert kept["offsets"][0]["committed_offset"] == 1
    cluster.classic_group(f"{group}-v2", group, {"i-0": [0]})
    cluster.commit(group, group, {0: 0})
    third = tmp_path / "third"
    third.mkdir()
    assert script("blue-green.sh", group, f"{group}-v2", str(third)).returncode == 4
    assert not list(third.iterdir())


def test_delete_stale_groups(script, environment, cluster, group, tmp_path):
    before = committed(cluster, group)
    assert "Nothing to do." in script("delete-stale-groups.sh", group, "7d", str(tmp_path)).stdout
    done = script("delete-stale-groups.sh", f"{group}*", "1ms", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert committed(cluster, group) == {}
    (file,) = tmp_path.glob("deleted-*.json")
    (kept,) = json.loads(file.read_text())["data"]["groups"]
    assert kept["offsets"][0]["committed_offset"] == before[group, 0][0]
    # Twice in one second, and in the same millisecond: each has an export of its own.
    for more in ("b", "c"):
        commit_fully(cluster, f"{group}-{more}", group, {0: (1, 0, "")})
    (at := tmp_path / "bin").mkdir()
    (at / "date").write_text("#!/bin/sh\necho 20261127T000000Z\n")
    (at / "date").chmod(0o755)
    frozen = {"PATH": f"{at}:{environment['PATH']}"}
    for more in ("b", "c"):
        done = script("delete-stale-groups.sh", f"{group}-{more}", "1ms", str(tmp_path), **frozen)
        assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("deleted-*.json"))) == 3


def test_after_rollout(script, cluster, group):
    cluster.classic_group(group, group, {"i-0": [0]})
    assert script("after-rollout.sh", group, "1").returncode == 0
    late = script("after-rollout.sh", group, "2", WAIT="50ms")
    assert (late.returncode, late.stdout.startswith(group)) == (7, True)
    cluster.create_topic(f"{group}-b", 2)
    cluster.classic_group(f"{group}-b", f"{group}-b", {"i-0": [0]})
    assert script("after-rollout.sh", f"{group}-b", "1").returncode == 8


HOSTILE = ("-{n} a b*[y]?", '{n} it\'s "$(touch pwned)" `id`\nb;c', "../{n}/%2F")
"""Names that Kafka takes: with wildcards, a dash in front, quotes, what a shell runs, two lines, a path."""
HOSTILE_ROWS = [(runbook, name) for runbook in sorted(MINE) for name in HOSTILE]
QUOTED = {row for row in HOSTILE_ROWS if row[1] == HOSTILE[1]}
"""With what a shell would run."""


@pytest.fixture
def hostile(request, cluster):
    """A group of such a name at 3 of 3 records, the topic it reads, and neighbours of like names."""
    number = next(_numbers)
    name, topic = request.param.format(n=f"n{number}"), f"-t{number}"
    cluster.create_topic(topic, 1)
    now = int(time.time() * 1000)
    append(cluster, topic, 0, ["x"] * 3, [now - hours * 3_600_000 for hours in (3, 2, 1)])
    words = {*name.split(), name.replace("*", "c").replace("[y]?", "yz")} - {name}
    for group in (name, *words):
        commit_fully(cluster, group, topic, {0: (3, 0, "mine")})
    return name, topic, words


@pytest.mark.parametrize(
    ("runbook", "hostile"),
    sampled(
        HOSTILE_ROWS,
        QUOTED | {row for row in HOSTILE_ROWS if row[0] == "delete-stale-groups.sh"},
        "the runbook that deletes takes all of them",
    ),
    indirect=["hostile"],
)
def test_a_hostile_name_is_one_group_and_runs_nothing(runbook, script, cluster, hostile, tmp_path):
    """Only the group named is touched."""
    name, topic, neighbours = hostile
    folder = tmp_path / "-kept $(touch pwned)"
    folder.mkdir()
    there = {(topic, 0): 3}
    arguments, code, left = {
        "after-rollout.sh": ([name, "0"], 7, there),
        "blue-green.sh": ([name, f"{name}-v2", str(folder)], 0, there),
        "delete-stale-groups.sh": ([glob.escape(name), "1ms", str(folder)], 0, {}),
        "lag-alert.sh": ([name, "5m", "http://127.0.0.1:1/"], 0, there),
        "replay-since.sh": ([name, topic, "PT2H30M", "-why $(touch pwned)"], 0, {(topic, 0): 1}),
    }[runbook]
    done = script(runbook, *arguments, WAIT="50ms" if code else "30s")
    assert done.returncode == code, done.stderr + done.stdout
    assert offsets(cluster, name) == left
    assert [offsets(cluster, other) for other in neighbours] == [there] * len(neighbours)
    assert not list(tmp_path.rglob("pwned"))
    kept = {"blue-green.sh": 1, "delete-stale-groups.sh": 1}.get(runbook, 0)
    assert len(list(folder.glob("*.json"))) == kept
    if runbook == "blue-green.sh":
        assert offsets(cluster, f"{name}-v2") == there
        delete_groups(cluster.admin, [f"{name}-v2"])
    delete_groups(cluster.admin, [name, *neighbours])


def test_a_stale_group_does_not_take_the_words_of_its_name_with_it(script, cluster, group, tmp_path):
    """`'a b*' 20s` with a stale `a b c` and a live `a` deleted `a`: names were split, the age was dropped."""
    commit_fully(cluster, f"{group} b c", group, {0: (3, 0, "mine")})
    done = script("delete-stale-groups.sh", f"{group} b*", "1ms", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert offsets(cluster, f"{group} b c") == {}
    assert offsets(cluster, group) == {(group, 0): 3}


@pytest.mark.parametrize("runbook", sorted(MINE))
def test_without_arguments_a_runbook_says_how_it_is_used(runbook, script):
    done = script(runbook, KGROUP_BOOTSTRAP_SERVER="127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"usage: {runbook} ")


def test_every_runbook_says_what_it_is_for_and_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.sh")} == MINE
    for name in MINE:
        path = EXAMPLES / name
        lines = path.read_text().splitlines()
        assert lines[0] == "#!/usr/bin/env bash"
        assert lines[1].startswith("# ")
        assert os.access(path, os.X_OK)
