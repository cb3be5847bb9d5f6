"""One Spark session for all tests of the pipeline, and logs to read."""

import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from made_logs import write_log

from kgroup.domain import uuid_bytes
from kgroup.history.sources import TOPICS_FILE, write_topics_file
from kgroup.pipeline.session import spark_session

INCIDENTS = Path(__file__).resolve().parents[1] / "data" / "incidents"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    settings = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    with spark_session("local[2]", settings) as session:
        yield session


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three partitions of made-up history."""
    root = tmp_path_factory.mktemp("made")
    for partition in (0, 7, 31):
        write_log(root / f"__consumer_offsets-{partition}", seed=zlib.crc32(b"%d" % partition), batches=900)
    return root


@pytest.fixture(scope="session")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded incidents as the folder of one cluster: each a partition of its own."""
    root, names = tmp_path_factory.mktemp("incidents"), {}
    for number, folder in enumerate(sorted(path for path in INCIDENTS.iterdir() if path.is_dir())):
        (partition,) = folder.glob("__consumer_offsets-*")
        shutil.copytree(partition, root / f"__consumer_offsets-{100 + number}")
        names |= {topic_id: name for name, topic_id in json.loads((folder / TOPICS_FILE).read_text()).items()}
    write_topics_file(root, {uuid_bytes(topic_id): name for topic_id, name in names.items()})
    return root
