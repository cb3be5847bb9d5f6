"""Backups at a URL: the same answers as from a disk, and one sentence for what is wrong."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Kgroup
from tests.cli.live import Client
from tests.cli.test_commands_of_pages import of_orders
from tests.s3 import ACCESS, S3Server

INCIDENTS = Path(__file__).resolve().parents[1] / "data" / "incidents"
UPGRADE = INCIDENTS / "upgrade-and-back"
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "storage.md").read_text(encoding="utf-8")
GROUP = "upgrade-and-back.2"


@pytest.fixture
def at(s3: S3Server) -> str:
    return f"s3://{s3.bucket(UPGRADE, 'backup/of today')}/backup/of today"


def without_places(text: str) -> str:
    return re.sub(r'"source": "[^"]*"', "", text)


@pytest.mark.parametrize(
    "command",
    [
        ("replay-log",),
        ("replay-log", "--raw"),
        ("replay-log", GROUP, "--at", "99999"),
        ("offsets-topic", "stats"),
        ("offsets-topic", "top"),
        ("blame", GROUP),
        ("upgrade", "rehearse", GROUP),
    ],
    ids=" ".join,
)
def test_what_is_told_is_the_same_from_a_disk_and_from_s3(
    kgroup: Kgroup, s3: S3Server, at: str, command: tuple[str, ...]
) -> None:
    there = kgroup(*command, "--files", at, "-o", "json", *s3.flags)
    here = kgroup(*command, "--files", str(UPGRADE), "-o", "json")
    assert there.code == here.code == 0
    assert without_places(there.out) == without_places(here.out)
    assert ACCESS[1] not in there.out + there.err


def test_an_object_can_be_named_and_a_glob_of_them(kgroup: Kgroup, s3: S3Server, at: str) -> None:
    (key,) = (k for k in s3.keys(at.split("/")[2]) if k.endswith(".log"))
    named = f"s3://{at.split('/')[2]}/{key}"
    there = kgroup("replay-log", "--files", named, named, "-o", "json", *s3.flags)
    here = kgroup("replay-log", "--files", *map(str, UPGRADE.rglob("*.log")), "-o", "json")
    assert there.code == 0 and there.document["data"]["events"]
    assert len(there.document["data"]["events"]) == len(here.document["data"]["events"])


def test_credentials_of_the_environment_are_enough(
    kgroup: Kgroup, s3: S3Server, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    assert kgroup("replay-log", "--files", at).code == 0


def test_wrong_credentials_are_6(kgroup: Kgroup, s3: S3Server, at: str) -> None:
    with s3.locked():
        ran = kgroup("replay-log", "--files", at, *s3.flags)
    assert ran.code == 6 and f"{at} denies us access (InvalidAccessKeyId)" in ran.err
    assert not any(secret in ran.out + ran.err for secret in ACCESS)
    assert "Traceback" not in ran.err and ran.out == ""


@pytest.mark.parametrize("url", ["s3://no-such-bucket/backup", "nothing-here", "nothing-here/a.log"])
def test_what_is_not_there_is_3(kgroup: Kgroup, s3: S3Server, at: str, url: str) -> None:
    ran = kgroup("replay-log", "--files", url if "://" in url else f"{at}/{url}", *s3.flags)
    assert ran.code == 3 and re.search("there is no bucket no-such-bucket|there is nothing at s3://", ran.err)


def test_an_endpoint_that_nobody_has_is_7(kgroup: Kgroup, s3: S3Server) -> None:
    flags = ("--storage-option", "AWS_ENDPOINT_URL=http://127.0.0.1:1")
    ran = kgroup("replay-log", "--files", "s3://bucket/a", *s3.flags, *flags, "--timeout", "500ms")
    assert ran.code == 7 and "s3://bucket/a could not be reached" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--files", "ftp://host/a"), "ftp:// is nothing that can be read or written"),
        (("--files", "s3://me:hush@bucket/a"), "has a user name or a password in it"),
        (("--files", "s3://b/a", "--storage-option", "AWS_REGOIN=x"), "'AWS_REGOIN' is unknown"),
        (("--files", "s3://b/a", "--storage-option", "AWS_ENDPOINT_URL=hush"), "is not a URL"),
    ],
)
def test_what_makes_no_sense_is_2(kgroup: Kgroup, words: tuple[str, ...], said: str) -> None:
    ran = kgroup("replay-log", *words)
    assert ran.code == 2 and said in ran.err and "hush" not in ran.err


def test_an_object_that_changes_while_it_is_read_is_1_and_nothing_is_told(
    kgroup: Kgroup, s3: S3Server, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = (k for k in s3.keys(at.split("/")[2]) if k.endswith(".log"))
    url = f"s3://{at.split('/')[2]}/{key}"
    from kgroup.admin.recording import files

    look = files.segments_of
    # Between the look and the reading somebody writes there.
    monkeypatch.setattr(files, "segments_of", lambda *of: (look(*of), s3.put(url, s3.get(url) + b"\0"))[0])
    ran = kgroup("replay-log", "--files", at, *s3.flags)
    assert ran.code == 1 and f"{url} changed while it was read" in ran.err and ran.out == ""


def test_a_local_path_imports_no_library_of_stores(kgroup: Kgroup) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from kgroup.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('obstore', 'hdfs_native', 'pyarrow', 'botocore') if m in sys.modules])"
    )
    words = [sys.executable, "-c", code, "replay-log", "--files", str(UPGRADE), "-q"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.splitlines()[-1] == "[]"


def test_replicas_of_a_partition_are_read_once_and_which_is_said(
    kgroup: Kgroup, s3: S3Server, tmp_path: Path
) -> None:
    (partition,) = UPGRADE.glob("__consumer_offsets-*")
    for broker in ("broker-1", "broker-2"):
        shutil.copytree(partition, tmp_path / broker / partition.name)
    (short,) = (tmp_path / "broker-1").rglob("*.log")
    data = short.read_bytes()
    short.write_bytes(data[: len(data) // 2])
    bucket = s3.bucket(tmp_path)
    for place, flags in ((str(tmp_path), []), (f"s3://{bucket}", s3.flags)):
        ran = kgroup("replay-log", "--files", place, "-o", "json", *flags)
        number = partition.name.rpartition("-")[2]
        assert (
            f"partition {number}: {place}/broker-1/{partition.name} is not read, as {place}/broker-2/"
            in ran.err
        )
        here = kgroup("replay-log", "--files", str(UPGRADE), "-o", "json")
        assert without_places(ran.out) == without_places(here.out) and ran.code == 0


def test_a_capture_into_s3_is_read_from_there(
    on_cluster: Kgroup, kgroup: Kgroup, cluster: Client, s3: S3Server
) -> None:
    cluster.commit("captured-into-s3", "orders", {0: 5})
    url = f"s3://{s3.bucket()}/history"
    ran = on_cluster("capture", "--out", url, "--once", *s3.flags)
    assert ran.code == 0 and f"partitions into {url}" in ran.err
    told = kgroup("replay-log", "captured-into-s3", "--files", url, "-o", "json", *s3.flags)
    assert told.code == 0 and [event["count"] for event in told.document["data"]["events"]] == [1]
    again = on_cluster("capture", "--out", url, "--once", *s3.flags)
    assert again.code == 0 and "recorded 0 batches, 0 bytes" in again.err
    missing = on_cluster("capture", "--out", "s3://no-such-bucket/x", "--once", *s3.flags)
    assert missing.code == 3 and "there is no bucket no-such-bucket" in missing.err


def test_the_page(
    on_cluster: Kgroup, cluster: Client, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/storage.md, line by line."""
    cluster.commit("orders", "orders", {0: 5})
    (tmp_path / "kafka" / "broker-1").mkdir(parents=True)
    of_orders(tmp_path / "kafka" / "broker-1" / "__consumer_offsets-8")
    s3.bucket(tmp_path / "kafka", "kafka", name="backups")
    for name, value in {**s3.profile(tmp_path), **s3.options}.items():
        monkeypatch.setenv(name, value)
    (block,) = re.findall(r"^```\n(.*?)^```", PAGE, re.M | re.S)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert lines.pop(0)[:2] == ["pip", "install"] and len(lines) == 5
    for words in lines:
        assert words.pop(0) == "kgroup"
        here = [
            w.replace("http://minio:9000", s3.endpoint).replace("broker:9092", cluster.bootstrap)
            for w in words
        ]
        ran = on_cluster(*here)
        assert ran.code == 0, (words, ran.err)
