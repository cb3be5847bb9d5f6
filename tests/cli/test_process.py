"""What only a process of its own shows: start-up imports, closed pipes, signals, completion."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from kgroup.cli.frame.completions import KEPT_S
from kgroup.client.connection import Connection
from kgroup.client.settings import parse_bootstrap
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgroup.runtime.cluster import Cluster
from tests import own_home

KGROUP = (sys.executable, "-m", "kgroup.cli.app")
HEAVY = (
    *("rich", "asyncio", "httpx", "yaml", "numpy", "pyarrow", "pyspark", "logging", "confluent_kafka"),
    *("prometheus_client", "pydantic", "mcp", "kgroup.broker", "kgroup.protocol", "kgroup.coordinator"),
)


def run(*argv, **kwargs):
    return subprocess.run([*KGROUP, *argv], capture_output=True, text=True, timeout=300, **kwargs)


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["explain", "FENCED_INSTANCE_ID"],
        ["list", "--help"],
        ["explain", "82", "-o", "json"],
    ],
)
def test_start_up_imports_nothing_heavy(argv):
    code = (
        "import sys; from kgroup.cli.frame.tree import run; code = run(sys.argv[1:]); "
        f"print(*(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stderr.strip()) == (0, "")


UNUSED = (
    *HEAVY[: HEAVY.index("kgroup.broker")],
    *("typer.main", "typer.completion", "subprocess", "platform", "uuid", "shutil", "random"),
    *("encodings.idna", "ssl", "kgroup.broker", "kgroup.coordinator", "kgroup.history", "kgroup.zookeeper"),
    *("kgroup.admin.read.describe_listed", "kgroup.admin.read.lag", "kgroup.protocol.streams_records"),
)


def test_list_imports_what_it_uses(cluster):
    """From a cluster with a group, and from one that does not answer."""
    cluster.create_topic("few-imports", 1)
    cluster.classic_group("few-imports-group", "few-imports", {"pod-0": [0]})
    code = (
        "import sys; from kgroup.cli.frame.tree import run; code = run(sys.argv[1:]); "
        f"print(*(m for m in {UNUSED!r} if m in sys.modules), file=sys.stderr); sys.exit(code)"
    )
    for where, exit_code in ((cluster.bootstrap, 0), ("127.0.0.1:1", 7)):
        argv = [sys.executable, "-c", code, "list", "-b", where]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=300)
        assert (ran.returncode, ran.stderr.splitlines()[-1]) == (exit_code, ""), where
        assert ("few-imports-group" in ran.stdout) == (exit_code == 0)


@pytest.mark.parametrize("asked", ["Option", "Context", "main", "colors", "__version__", "nonsense"])
def test_a_package_left_for_later_is_whole_for_later_importers(asked):
    told = f"import typer; print(getattr(typer, {asked!r}, None))"
    ours, alone = (
        subprocess.run(
            [sys.executable, "-c", f"{before}; {told}"], capture_output=True, text=True, timeout=300
        )
        for before in ("import kgroup.cli, typer.core", "import typer.main")
    )
    assert (ours.returncode, ours.stderr) == (0, "")
    assert re.sub("0x[0-9a-f]+", "", ours.stdout) == re.sub("0x[0-9a-f]+", "", alone.stdout)


ASCII = {**os.environ, "PYTHONIOENCODING": "ascii"}


def test_an_output_without_unicode_fails_no_command(cluster, config_file):
    """Every command that prints a dot or an arrow ended with 1 and without its answer."""
    group = "grüße-𝕂"
    cluster.commit(group, "orders", {0: 0})
    where, shown = ("-b", cluster.bootstrap), r"gr\u00fc\u00dfe-\ud835\udd42"
    for argv in (("describe", group), ("doctor", group), ("blame", group), ("upgrade", "plan", group)):
        told = run(*argv, *where, env=ASCII)
        assert told.returncode == 0, (argv, told.stderr)
        assert told.stdout.isascii() and shown in told.stdout, (argv, told.stdout)
    assert " - __consumer_offsets-" in run("describe", group, *where, env=ASCII).stdout
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        document = read(run("describe", group, *where, "-o", form, env=ASCII).stdout)
        assert document["data"]["groups"][0]["group_id"] == group


def test_stdin_is_utf_8_whatever_the_output_is(cluster, config_file):
    argv = (*KGROUP, "offsets", "import", "-", "-b", cluster.bootstrap)
    told = subprocess.run(
        argv, env=ASCII, input="grüße-stdin,orders,0,1\n".encode(), capture_output=True, timeout=30
    )
    assert told.returncode == 0, told.stderr
    assert rb"gr\u00fc\u00dfe-stdin" in told.stdout


def test_a_closed_pipe_ends_quietly():
    process = subprocess.Popen(
        [*KGROUP, "explain", "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(300) == 0


IN_BASH = {"_KGROUP_COMPLETE": "bash"}


def test_completion_asks_the_program(tmp_path):
    for words, offered in (
        ("kgroup expl", ["explain"]),
        ("kgroup explain FENCED_INST", ["FENCED_INSTANCE_ID"]),
        ("kgroup describe g -o nd", ["ndjson"]),
        ("kgroup context u", ["use"]),
        ("kgroup remove-members --instance-", ["--instance-id"]),
    ):
        ran = run(words, env={**os.environ, **IN_BASH})
        assert ran.stdout.split() == offered, words


def _offered(environ, words, **more):
    """What is offered; asked again where that is nothing, as a TAB waits a second for the cluster at most."""
    offered = (run(words, env={**os.environ, **environ, **IN_BASH, **more}).stdout.split() for _ in range(30))
    return next(filter(None, offered), [])


def test_completion_knows_what_is_on_the_cluster(cluster, config_file, tmp_path):
    cluster.create_topic("complete-me", 1)
    cluster.classic_group("complete-group", "complete-me", {"pod-0": [0]})
    config_file.write_text("contexts: {staging: {local: /x/y}}\n")
    environ = {
        "KGROUP_BOOTSTRAP_SERVER": cluster.bootstrap,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }

    offered = partial(_offered, environ)
    assert offered("kgroup describe complete-g") == ["complete-group"]
    assert offered("kgroup list --topic complete-m") == ["complete-me"]
    assert offered("kgroup cluster topics complete-m") == ["complete-me"]
    assert offered("kgroup remove-members complete-group --instance-id po") == ["pod-0"]
    assert offered("kgroup wait complete-group --for member=p") == ["member=pod-0"]
    assert offered("kgroup wait complete-group --for sta") == ["stable", "static"]
    assert offered("kgroup list --state Sta") == ["Stable"]
    assert offered("kgroup context use st") == ["staging"]
    # Kept for a moment, for this cluster alone; a cluster that does not answer offers nothing.
    cluster.create_topic("complete-later", 1)
    kept = tmp_path / "cache" / "kgroup" / "completion.json"
    answers = json.loads(kept.read_text())
    began, words = 0.0, [""]
    while time.time() - began >= KEPT_S:  # a busy machine may take longer than that
        began = time.time()
        kept.write_text(json.dumps({key: {**answer, "time": began} for key, answer in answers.items()}))
        words = offered("kgroup list --topic complete-")
    assert words == ["complete-me"]
    dead = {"KGROUP_BOOTSTRAP_SERVER": "127.0.0.1:1"}
    unseen = run("kgroup list --topic complete-", env={**os.environ, **environ, **IN_BASH, **dead})
    assert unseen.stdout == ""
    assert offered(f"kgroup -b {cluster.bootstrap} describe complete-g", **dead) == ["complete-group"]
    assert kept.stat().st_mode & 0o777 == 0o600


def test_completion_knows_settings_changes_events_and_codes(cluster, tmp_path):
    cluster.create_topic("settle-me", 1)
    cluster.commit("settle-group", "settle-me", {0: 0})
    environ = {"KGROUP_BOOTSTRAP_SERVER": cluster.bootstrap, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    offered = partial(_offered, environ)
    assert offered("kgroup reset-offsets settle-group --topic settle-m") == ["settle-me"]
    name = "consumer.session.timeout.ms"
    assert offered(f"kgroup config get settle-group {name[:18]}") == [name]
    assert offered(f"kgroup config set settle-group {name[:18]}") == [f"{name}="]
    assert offered(f"kgroup config set settle-group --unset {name[:18]}") == [name]
    assert offered("kgroup replay-log --events rewound,rebalance-s") == ["rewound,rebalance-started"]
    assert offered("kgroup explain KG30") == [f"KG30{n}" for n in range(1, 10)]
    state = tmp_path / "state"
    reset = ("reset-offsets", "settle-new", "--topic", "settle-me", "--to-earliest", "--create", "--execute")
    changed = run(*reset, "-b", cluster.bootstrap, env={**os.environ, "XDG_STATE_HOME": str(state)})
    assert changed.returncode == 0, changed.stderr
    for words in ("kgroup journal show j-", "kgroup reset-offsets --undo j-"):
        assert offered(words, XDG_STATE_HOME=str(state)) == ["j-0001"]


def test_completion_says_nothing_into_the_line_that_is_typed(tmp_path):
    """Not that no cluster is named, either: a folder that nobody serves offers nothing."""
    (tmp_path / "kgroup" / "cluster").mkdir(parents=True)
    home = own_home.environment(tmp_path) | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    ran = run("kgroup describe x", env=home | IN_BASH)
    assert (ran.stdout.strip(), ran.stderr, ran.returncode) == ("", "", 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_tells_where_and_ends_cleanly_on_signals(tmp_path, number, kgroup):
    folder = str(tmp_path / "c")
    process = subprocess.Popen(
        [*KGROUP, "serve", "--local", folder, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        match = re.fullmatch(r"kgroup: serving on (127\.0\.0\.1:\d+)\n", line)
        assert match is not None, line
        # The same folder, named by --local, is reached through the process that serves it.
        status = kgroup("cluster", "status", "--local", folder, "-o", "json")
        assert status.code == 0
        assert status.document["cluster"]["bootstrap"] == match[1]
        second = kgroup("serve", "--local", folder, "--port", "0")
        assert second.code == 1 and "is in use by process" in second.err
    finally:
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert kgroup("cluster", "status", "--local", folder).code == 0


def test_metrics_of_a_served_folder(tmp_path, kgroup):
    """CP-56: in process, through the endpoint that `serve --metrics` announces, and without one."""
    folder = str(tmp_path / "c")

    def status(*more):
        return kgroup("cluster", "status", "--local", folder, "-o", "json", *more).document["data"]

    def named(found):
        return {m["name"]: m["value"] for m in found["metrics"] if not m["tags"]}

    Cluster(Path(folder)).close()
    in_process = named(status())
    assert in_process["NumGroups"] == 0 and in_process["offset-commit-rate"] is None
    with served(folder, "--metrics", "0") as lines:
        assert re.fullmatch(r"kgroup: metrics on http://127\.0\.0\.1:\d+/metrics\n", lines[0])
        found = named(status())
        assert found.keys() == in_process.keys() and found["offset-commit-rate"] == 0
        wide = kgroup("cluster", "status", "--local", folder, "-o", "wide").out
        assert "num-partitions{state=active}" in wide
    with served(folder):
        found = status()
        assert found["metrics"] is None and "--metrics" in found["metrics_note"]


@contextmanager
def served(folder, *options):
    """`kgroup serve` on the folder; the lines it printed until it was ready."""
    process = subprocess.Popen(
        [*KGROUP, "serve", "--local", folder, "--port", "0", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        lines = []
        while not lines or not lines[-1].startswith("kgroup: serving on"):
            lines.append(process.stdout.readline())
            assert lines[-1], "it ended"
        yield lines
    finally:
        process.terminate()
        process.communicate(timeout=300)


@pytest.mark.parametrize(("options", "newest"), [((), 5), (("--kafka", "4.3"), 4)])
def test_serve_is_the_release_it_is_told_to_be(tmp_path, options, newest):
    """What no release serves is refused in version 0, with the versions that are (KIP-511)."""
    with (
        served(tmp_path / "data", *options) as lines,
        socket.create_connection(parse_bootstrap(lines[-1].split()[-1])[0]) as client,
    ):
        client.sendall(Connection("test", "it").hello(5))
        size = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
        answer = client.recv(size, socket.MSG_WAITALL)
    found = ApiVersionsResponse.decode(answer[4:], 5 if newest == 5 else 0)
    assert [a.max_version for a in found.api_keys if a.api_key == ApiVersionsRequest.API] == [newest]


def test_ctrl_c_ends_with_130(tmp_path):
    """A command that waits for a broker which never answers, interrupted."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        process = subprocess.Popen(
            [*KGROUP, "list", "-b", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(1), "it asks, and is past its imports"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (130, "", "")


INTERRUPTED = """
import os, signal, sys, time
import kgroup.cli.app as app
from kgroup.cli.frame.running import run_command

def stop():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0)

def command(env):
    {where}
    time.sleep(20)

app.run = lambda argv: run_command(lambda: None, command, {{}})
app.main()
"""


@pytest.mark.parametrize(
    "where",
    [
        "stop()",
        "exec('stop()', {'stop': stop})",
        "import weakref; thing = {1}; kept = weakref.ref(thing, lambda _: stop()); del thing",
    ],
    ids=["anywhere", "in a string that runs", "where Python drops exceptions"],
)
def test_ctrl_c_ends_with_130_wherever_it_arrives(where, tmp_path):
    """Neither by the signal itself, nor not at all, nor with a traceback."""
    (tmp_path / "interrupted.py").write_text(INTERRUPTED.format(where=where))
    line = [sys.executable, "-m", "interrupted"]
    ran = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


@pytest.mark.parametrize("damage", ["torn", "damaged"])
def test_what_a_data_folder_lost_is_said_at_the_start_and_by_every_command(tmp_path, damage):
    """A torn tail is cut and kept, and all is whole then. A damaged partition is refused: exit code 5."""
    folder = tmp_path / "data"
    Cluster(folder).close()
    assert run("list", "--local", folder).returncode == 0
    path = folder / "__consumer_offsets-1" / f"{0:020d}.log"
    if damage == "damaged":
        path.unlink()
    else:
        path.write_bytes(b"half of an append")
    ran = run("list", "--local", folder)
    if damage == "damaged":
        assert ran.returncode == 5
        assert "__consumer_offsets-1 cannot be loaded, its groups are not served: " in ran.stderr
        assert f"{path} is missing (restore it from a backup" in ran.stderr
        assert "groups of __consumer_offsets 1 are not seen" in ran.stderr
    else:
        assert ran.returncode == 0
        assert f"{path} ended in 17 bytes that are no whole append" in ran.stderr
        (kept,) = folder.glob("__consumer_offsets-1/cut-from-*")
        assert str(kept) in ran.stderr and kept.read_bytes() == b"half of an append"
        path.write_bytes(b"another")
    with subprocess.Popen(
        [*KGROUP, "serve", "--local", folder, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline().startswith("kgroup: serving on")
        process.terminate()
        _, err = process.communicate(timeout=300)
    assert ("is missing" if damage == "damaged" else "ended in 7 bytes") in err


def test_a_ready_file_is_there_while_clients_may_connect(tmp_path, kgroup):
    ready = tmp_path / "at.json"
    ready.write_text("left over from before")
    with served(str(tmp_path / "c"), "--ready-file", str(ready), "--brokers", "2") as lines:
        found = json.loads(ready.read_text())
        assert lines[-1] == f"kgroup: serving on {found['bootstrap']}\n"
        os.kill(found["pid"], 0)
        assert kgroup("list", "-b", found["bootstrap"]).code == 0
    assert not ready.exists()


def test_sigterm_ends_a_server_while_time_moves_far(tmp_path):
    """With a deadline per ms, the move would take hours."""
    ready = tmp_path / "at.json"
    settings = ["--set", "offsets.retention.check.interval.ms=1", "--partitions", "1"]
    argv = [*KGROUP, "serve", "--memory", "--port", "0", "--control", "0", "--ready-file", ready, *settings]
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(server.kill)
        while not server.stdout.readline().startswith("kgroup: serving on"):
            pass
        found = json.loads(ready.read_text())
        token = {"Authorization": f"Bearer {found['token']}"}
        moving, asking = (
            stack.enter_context(
                closing(http.client.HTTPConnection(urlsplit(found["control"]).netloc, timeout=60))
            )
            for _ in range(2)
        )

        def now_ms():
            asking.request("GET", "/now", headers=token)
            return json.loads(asking.getresponse().read())["now_ms"]

        began_ms = now_ms()
        moving.request("POST", "/advance", json.dumps({"by": "300d"}), token)
        while now_ms() < began_ms + 60_000:
            pass
        server.terminate()
        _, err = server.communicate(timeout=60)
        assert (server.returncode, err) == (0, "")
    assert not ready.exists()


@pytest.mark.parametrize("name", ["absent/at.json", "."])
def test_a_ready_file_that_cannot_be_written_is_refused_before_anything_is_served(tmp_path, kgroup, name):
    ran = kgroup("serve", "--memory", "--port", "0", "--ready-file", str(tmp_path / name))
    assert (ran.code, ran.out) == (2, "") and "cannot be written" in ran.err


def test_no_ready_file_is_left_by_a_start_that_fails(tmp_path, kgroup):
    import socket

    ready = tmp_path / "at.json"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ready.write_text("left over from before")
        ran = kgroup("serve", "--memory", "--port", port, "--ready-file", str(ready))
    assert ran.code == 1 and list(tmp_path.glob("*at.json*")) == []
