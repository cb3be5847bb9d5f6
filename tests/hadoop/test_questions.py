"""The ten questions of `tests/pipeline/questions.py`, on YARN and to tables in HDFS: the same answers."""

import getpass
import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from kgroup.pipeline.tables.store import Store
from kgroup.storage.options import StorageOptions
from tests.pipeline import local_run
from tests.pipeline.made_logs import write_log
from tests.pipeline.questions import TEN, Answers, asked_there

from .minicluster import Hadoop
from .test_yarn import SETTINGS

pytestmark = [pytest.mark.hadoop, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    for partition in (3, 19):
        write_log(root / f"__consumer_offsets-{partition}", seed=partition, batches=400)
    return root


@pytest.fixture(scope="module")
def tables(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    local_run.run([source], Store(folder), 200_000, 2)
    return folder


@pytest.fixture(scope="module")
def expected(tables: Path) -> Answers:
    """What one process answers of a folder."""
    found = asked_there("local[2]", str(tables))
    assert len(found) == len(TEN) and all(found.values())
    return found


def test_yarn_answers_as_one_process(cluster: Hadoop, tables: Path, expected: Answers) -> None:
    environ = {**os.environ, "HADOOP_CONF_DIR": str(cluster.conf)}
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    assert asked_there("yarn", str(tables), environ, *settings) == expected


def test_tables_in_hdfs_are_answered_as_those_in_a_folder(
    cluster: Hadoop, source: Path, expected: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", getpass.getuser())
    url = f"{cluster.hdfs}/some/tables"
    local_run.run([source], Store(url, StorageOptions.of({})), 200_000, 2)
    assert asked_there("local[2]", url) == expected
