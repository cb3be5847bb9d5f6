"""`pipeline query --remote`: the rows of a Spark Connect server, and what is said when there is none."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc")

import grpc
import pyspark
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from kgroup.errors import ConfigError, Unreachable
from kgroup.pipeline.spark import remote
from kgroup.pipeline.spark.java import java_home
from kgroup.pipeline.tables.store import Store
from tests.interop.server import free_port
from tests.pipeline import local_run
from tests.pipeline.processes import DEPLOY

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
KGROUP = [sys.executable, "-m", "kgroup"]
TOKEN = "a token of the test"


@contextmanager
def connect_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Spark's own Connect server on loopback, which wants TOKEN; its URL and its process."""
    port = free_port()
    home = Path(pyspark.__file__).parent
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.connect.authenticate.token": TOKEN,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": folder / "local",
        "spark.master": "local[1]",
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": "false",
    }
    conf = [f"--conf={name}={value}" for name, value in settings.items()]
    server = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", *conf, "spark-internal"]
    environ = {**os.environ, "JAVA_HOME": str(java_home(os.environ, folder)), "SPARK_HOME": str(home)}
    command = [home / "bin" / "spark-class", f"{DEPLOY}.SparkSubmit", *server]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, cwd=folder, stdout=log, stderr=log)
    try:
        while not answers(port):
            assert process.poll() is None, (folder / "server.log").read_text()[-2000:]
            time.sleep(0.2)
        # A token travels without TLS to this name alone.
        yield f"sc://localhost:{port}", process
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        # Where nobody listens, a probe may be given the port itself, and reach itself.
        return not probe.connect_ex(("127.0.0.1", port)) and probe.getsockname() != probe.getpeername()


@pytest.fixture(scope="module")
def store(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    found = Store(tmp_path_factory.mktemp("tables"))
    local_run.run([made], found, 200_000, 2)
    return found


def query(tables: Path, table: str, url: str, token: str = "") -> subprocess.CompletedProcess[str]:
    command = [*KGROUP, "pipeline", "query", table, str(tables), "--remote", url, "-o", "json"]
    environ = {**os.environ, "JAVA_HOME": "/nowhere"}
    if token:
        environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=1500)


def test_a_server_answers_who_has_its_token_and_is_missed_when_it_goes_away(store, tmp_path, monkeypatch):
    with connect_server(tmp_path) as (url, process):
        monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", TOKEN)
        shown = query(store.root, "top_writers", url, TOKEN)
        assert shown.returncode == 0, shown.stderr
        denied = query(store.root, "top_writers", url, "another one")

        with pytest.raises(Unreachable, match="has gone away"), remote.remote_session(url) as session:
            process.kill()
            session.range(3).collect()
    assert json.loads(shown.stdout)["data"]["rows"]
    assert denied.returncode == 6
    assert "did not let us in" in denied.stdout


def test_no_server_is_told_with_its_own_exit_code(store):
    where = f"127.0.0.1:{free_port()}"
    done = query(store.root, "members", f"sc://{where}")
    assert done.returncode == 7
    assert f"no Spark Connect server answers at sc://{where}" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_remote_server_takes_no_master(store):
    command = ["pipeline", "query", "members", str(store.root), "--remote", "sc://h", "--master", "local[1]"]
    done = subprocess.run([*KGROUP, *command], capture_output=True, text=True, timeout=1500)
    assert done.returncode == 2
    assert "--remote goes with neither --master nor --conf" in done.stderr


@contextmanager
def server_of(version: str) -> Iterator[str]:
    """A server that speaks Spark Connect and says that it is this Spark."""

    class Old(base_pb2_grpc.SparkConnectServiceServicer):  # type: ignore[misc]
        def AnalyzePlan(self, request, context):
            told = base_pb2.AnalyzePlanResponse.SparkVersion(version=version)
            return base_pb2.AnalyzePlanResponse(session_id=request.session_id, spark_version=told)

    server = grpc.server(ThreadPoolExecutor(1))
    base_pb2_grpc.add_SparkConnectServiceServicer_to_server(Old(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize("version", ["3.5.9", "4.2.1", "5.0.0", ""])
def test_a_server_of_another_version_is_refused(version):
    with server_of(version) as url:
        text = rf"is Spark {version or 'of no version'}, and this client is of 4\."
        with pytest.raises(ConfigError, match=text), remote.remote_session(url):
            pass


def test_a_server_of_another_version_has_an_exit_code(store):
    with server_of("4.2.1") as url:
        done = query(store.root, "members", url)
    assert done.returncode == 2
    (error,) = json.loads(done.stdout)["errors"]
    assert "is Spark 4.2.1" in error["message"]


def test_a_server_that_does_not_speak_it_is_no_such_server():
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        url = f"sc://127.0.0.1:{port}"
        with pytest.raises(ConfigError, match="is not a Spark Connect server"), remote.remote_session(url):
            pass
    finally:
        server.stop(None).wait()


def test_a_port_that_never_answers_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Unreachable, match="within|answers at"), remote.remote_session(url, answer_s=0.5):
            pass


@pytest.mark.parametrize("url", ["http://host:1", "sc://", "sc://host:1/path", "sc://host:port"])
def test_what_is_no_address_of_a_server_is_told(url):
    text = "is not the address of a Spark Connect server"
    with pytest.raises(ConfigError, match=text), remote.remote_session(url):
        pass
