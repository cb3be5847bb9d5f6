"""Damaged logs through every view of the history commands: no traceback, no hang, a word on what is wrong."""

import random
import struct
from pathlib import Path

import pytest

from kgroup.cli.inputs.history import closing_lines
from kgroup.history.fold.events import Kind
from kgroup.history.sources.logs import segment_logs
from kgroup.protocol.batches import LogRecord, encode_batch
from tests.cli.conftest import Kgroup
from tests.cli.damage import INCIDENTS, NAME, RECORDED, batches_of, damaged_folder, faults
from tests.cli.live import Client
from tests.unit.history.events import event

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_input_ends_in_a_message_and_exit_code_0_1_or_5(seed: int, tmp_path: Path) -> None:
    assert faults(seed, tmp_path / "logs") == []


def test_the_same_seed_does_the_same_damage(tmp_path: Path) -> None:
    for name in ("one", "two"):
        damaged_folder(random.Random(7), tmp_path / name)
    one, two = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*.log")
            if path.is_file()
        }
        for name in ("one", "two")
    )
    assert one == two and one


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    first, *rest = batches_of(RECORDED["upgrade-and-back"])
    (tmp_path / NAME).write_bytes(first)
    (tmp_path / f"{1:020d}.log").write_bytes(rest[0])
    (tmp_path / f"{2:020d}.log").write_bytes(b"".join(rest[1:]))
    (log,) = segment_logs([tmp_path])
    log.files[1].unlink()
    read = [header.base_offset for _, headers in log.batches() for header in headers]
    assert read[0] == 0 and len(read) == len(rest)
    assert [str(bad) for bad in log.bad] == [
        f"{log.files[1]}: bytes 0 to 0: cannot be read: No such file or directory"
    ]


def test_a_folder_named_like_a_segment_is_none(kgroup: Kgroup, tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    ran = kgroup("replay-log", "--files", str(tmp_path))
    assert ran.code == 1 and "holds no segment" in ran.err


def other_topic() -> bytes:
    """A segment of __transaction_state: its keys begin like those of old commits."""
    key = struct.pack(">hh", 0, 4) + b"tx-1"
    return b"".join(encode_batch([LogRecord(key, b"state", timestamp_ms=1)], base_offset=n) for n in range(9))


def test_a_segment_of_another_topic_makes_no_story(kgroup: Kgroup, tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(other_topic())
    ran = kgroup("replay-log", "--files", str(tmp_path))
    assert ran.code == 1 and "9 records, not from __consumer_offsets" in ran.err
    assert "record-unreadable" not in ran.out
    sound = tmp_path / "__consumer_offsets-6"
    sound.mkdir()
    (sound / NAME).write_bytes(RECORDED["upgrade-and-back"])
    both = kgroup("replay-log", "--files", str(tmp_path / NAME), "--files", str(sound))
    assert both.code == 5 and "downgraded" in both.out and "9 records, not from" in both.err


def test_a_brokers_folder_of_another_topic_is_refused(kgroup: Kgroup, tmp_path: Path) -> None:
    place = tmp_path / "__transaction_state-0"
    place.mkdir()
    (place / NAME).write_bytes(other_topic())
    (place / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    for path in (place, place / NAME):
        ran = kgroup("replay-log", "--files", str(path))
        assert ran.code == 1 and "a segment of __transaction_state, not of __consumer_offsets" in ran.err


@pytest.mark.parametrize("view", ["--raw", "--follow"])
@pytest.mark.parametrize("output", ["csv", "yaml", "name"])
def test_a_view_that_prints_as_it_reads_refuses_other_formats(
    kgroup: Kgroup, cluster: Client, view: str, output: str
) -> None:
    ran = kgroup("replay-log", view, "-b", cluster.bootstrap, "-o", output)
    assert ran.code == 2 and f"{view} has no -o {output}" in ran.err


def test_a_missing_first_segment_is_said_first(kgroup: Kgroup, tmp_path: Path) -> None:
    """The story begins where the files do, and calls nothing before it whole."""
    batches = batches_of(RECORDED["upgrade-and-back"])
    place = tmp_path / "__consumer_offsets-6"
    place.mkdir()
    (place / f"{7:020d}.log").write_bytes(b"".join(batches[3:]))
    ran = kgroup("replay-log", "--files", str(tmp_path), "-o", "json")
    (covered,) = ran.document["data"]["coverage"]
    assert not covered["from_the_start"] and covered["complete_from_offset"] == covered["first_offset"] > 0
    assert "complete only from offset" in kgroup("replay-log", "--files", str(tmp_path)).out.splitlines()[0]
    assert not [e for e in ran.document["data"]["events"] if e["event"] == "group-created" and e["proven"]]


def test_what_a_log_alone_cannot_tell_is_said(kgroup: Kgroup) -> None:
    """KIP-1251: a refused commit is in no log."""
    files = ("--files", str(INCIDENTS / "reset-by-hand"))
    for argv in (("replay-log",), ("blame", "reset-by-hand.12")):
        assert "a refused commit) leave no record" in kgroup(*argv, *files).out
        limits = kgroup(*argv, *files, "-o", "json").document["data"]["limits"]
        assert any("a refused commit" in limit for limit in limits)
    told = closing_lines([event(Kind.REWOUND, protocol="classic", suspicious=True)])
    assert told[0].startswith("1 suspicious: the log cannot settle it (KIP-1251)")
    assert any("count exactly" in line for line in told) and max(map(len, told)) <= 100
