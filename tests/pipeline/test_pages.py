"""Every block of docs/pipeline.md, and every example of help that needs Spark, runs in a scratch folder."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from kgroup.cli.frame.lazy import walk
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served
from tests.pipeline.made_logs import write_log
from tests.pipeline.processes import process
from tests.ran import Ran
from tests.s3 import S3Server
from tests.sampled import FULL

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
# Those in `sh` want a cluster: tests/hadoop and test_connect have one.
SHELL, PYTHON = ([text for kind, text in BLOCKS if kind == wanted] for wanted in ("", "python"))
SAID = "broker:9092"
KGROUP = [sys.executable, "-m", "kgroup.cli.app"]
CLUSTER = "spark://host:7077"
EXAMPLES = [line for c in walk() if c.path.startswith("pipeline ") for line, _ in c.examples]


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with served(Cluster(config={"group.initial.rebalance.delay.ms": "0"}, offsets_partitions=2)) as address:
        client = Client(address)
        client.create_topic("orders", 2)
        client.commit("orders", "orders", {0: 5, 1: 7})
        yield address
        client.close()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_log(tmp_path / "backup" / "__consumer_offsets-7", seed=7, batches=300)
    (folder := tmp_path / "backup" / "__consumer_offsets-8").mkdir()
    batches = (of_orders(offset, 1_700_000_000_000 + 60_000 * offset) for offset in range(20))
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_orders(offset: int, timestamp_ms: int) -> bytes:
    """A batch of one commit of the group the page is about."""
    key = r.encode_key(r.OffsetCommitKey(group="orders", topic="orders", partition=0))
    value = r.encode_value(r.OffsetCommitValue(offset=offset, commit_timestamp=timestamp_ms))
    return encode_batch([LogRecord(key, value, timestamp_ms=timestamp_ms)], base_offset=offset)


def ends_at_its_first_run(words: list[str]) -> None:
    """A command with --follow: it goes on until Ctrl-C."""
    process = subprocess.Popen([*KGROUP, *words], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "run 1:" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(900) == 130
    finally:
        process.kill()
        process.wait()
        process.stderr.close()  # type: ignore[union-attr]


def test_the_shell_block(scratch: Path, bootstrap: str, kgroup: Callable[..., Ran]) -> None:
    lines = [shlex.split(line, comments=True) for block in SHELL for line in block.splitlines()]
    assert len(lines) == 10 and lines.pop(0) == ["pip", "install", ".[spark]"]
    for words in lines:
        assert words.pop(0) == "kgroup"
        words = [word.replace(SAID, bootstrap) for word in words]
        if "--follow" in words:
            ends_at_its_first_run(words)
            continue
        done = kgroup(*words)
        assert done.code == 0, (words, done.err)
    assert {path.name for path in scratch.iterdir()} >= {"tables", "orders.html", "live"}


def test_the_python_block(scratch: Path, bootstrap: str, spark: object) -> None:
    (block,) = PYTHON
    shutil.copytree(scratch / "backup", scratch / "history")
    here = block.replace('"/', f'"{scratch}/').replace(SAID, bootstrap)
    names: dict[str, object] = {"spark": spark}
    exec(here, names)
    assert names["live"].isStreaming  # type: ignore[attr-defined]


def test_the_examples_of_help(
    scratch: Path,
    bootstrap: str,
    s3: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    kgroup: Callable[..., Ran],
) -> None:
    """In the order of the commands: what one asks for another has made. The master is one of our own."""
    s3.bucket(scratch / "backup", name="kafka")
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    shutil.copytree(scratch / "backup", scratch / "history")
    follows = [line for line in EXAMPLES if "--follow" in line]
    for line in (line for line in EXAMPLES if line not in follows):
        line = line.replace("AWS_REGION=eu-west-1", "AWS_REGION=us-east-1")
        words = shlex.split(line.replace(SAID, bootstrap).replace(CLUSTER, "local[1]"))
        # Executors find secrets in the environment that their JVM was started in.
        done = (process if "s3://" in line else kgroup)(*words[1:])
        assert done.code == 0, (line, done.err)
    # The page has one of them.
    for number, line in enumerate(follows if FULL else ()):
        elsewhere = scratch / f"follow-{number}"
        shutil.copytree(scratch / "history", elsewhere / "history")
        monkeypatch.chdir(elsewhere)
        ends_at_its_first_run(shlex.split(line.replace(SAID, bootstrap))[1:])
    assert {path.name for path in scratch.iterdir()} >= {"tables", "orders.html", "orders.png", "kgroup.zip"}
