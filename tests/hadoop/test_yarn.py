"""`kgroup pipeline run --master yarn` on Hadoop's own YARN, in client mode, as a user runs it."""

import json
import os
import shlex
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyspark

import kgroup
from kgroup.history.compiled import LOOPS, runs_as
from kgroup.pipeline.tables.store import Store
from tests.pipeline.made_logs import write_log
from tests.pipeline.test_ingest import check_equal, in_process

from .minicluster import Hadoop

pytestmark = [pytest.mark.hadoop, pytest.mark.timeout(1800)]
KGROUP = [sys.executable, "-m", "kgroup"]
# Spark's jars are where the nodes run: sending half a GB of them to HDFS first would show nothing more.
SETTINGS = {
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent / 'jars'}/*",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.instances": "2",
    "spark.executor.memory": "500m",
    "spark.yarn.am.memory": "500m",
    "spark.yarn.submit.waitAppCompletion": "true",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two partitions of made-up history."""
    root = tmp_path_factory.mktemp("made")
    for partition in (3, 19):
        write_log(root / f"__consumer_offsets-{partition}", seed=zlib.crc32(b"%d" % partition), batches=400)
    return root


def run(
    cluster: Hadoop, source: str, out: str, *more: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    conf = [f"--conf={name}={value}" for name, value in {**SETTINGS, **settings}.items()]
    command = [*KGROUP, "pipeline", "run", source, "--out", out, "--master", "yarn", "-o", "json"]
    environ = {**os.environ, "HADOOP_CONF_DIR": str(cluster.conf)}
    return subprocess.run([*command, *conf, *more], env=environ, capture_output=True, text=True, timeout=1500)


def test_executors_run_the_kgroup_that_is_installed(cluster, made, tmp_path):
    done = run(cluster, str(made), str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    workers = json.loads(done.stdout)["data"]["workers"]
    own, built = str(Path(kgroup.__file__).parent), runs_as(LOOPS["reading logs"])
    if built == "compiled":
        assert [(w["kgroup"], w["loops"]) for w in workers] == [(own, built)]
    else:
        assert {Path(w["kgroup"]).parent.name for w in workers} == {"kgroup.zip"}
    check_equal(Store(tmp_path / "out"), in_process(made))


def test_executors_without_kgroup_run_the_zip(cluster, made, tmp_path):
    """Their Python has what kgroup imports, and no kgroup."""
    python = tmp_path / "python"
    packages = str(Path(pyspark.__file__).parents[1])
    # Without `site` no .pth is read, by which a checkout would be found.
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH":{shlex.quote(packages)} exec {sys.executable} -S "$@"\n'
    )
    python.chmod(0o755)
    done = run(cluster, str(made), str(tmp_path / "out"), **{"spark.pyspark.python": str(python)})
    assert done.returncode == 0, done.stderr
    (worker,) = json.loads(done.stdout)["data"]["workers"]
    assert (Path(worker["kgroup"]).parent.name, worker["loops"]) == ("kgroup.zip", "plain Python")
    check_equal(Store(tmp_path / "out"), in_process(made))
