"""Faults of a soak count when they were seen to happen, and not before."""

import random
import sys

import pytest

from tests.soak.consumers import Slot
from tests.soak.faults import BROKEN, SERVER, Faults


class Connections:
    """A proxy with so many connections open."""

    def __init__(self, count):
        self.count = count

    def break_all(self):
        return self.count


@pytest.fixture
def slot(tmp_path):
    """A process that does nothing until it is killed."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    made = Slot("some client", sleeper, "g", "classic", "", tmp_path / "j.jsonl")
    made.start("nowhere", "t")
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.wait()


def faults(slot, connections=0):
    return Faults(None, Connections(connections), [slot], random.Random(1))


def test_a_killed_process_was_seen_to_die(slot, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    made = faults(slot)
    assert made._kill("some client")
    assert not slot.running
    assert not made._kill("some client"), "there is nobody left to kill"


def test_a_stopped_process_was_seen_to_stop_and_goes_on(slot, monkeypatch):
    monkeypatch.setattr("tests.soak.faults.PAUSES_S", (0.0,))
    assert faults(slot)._stop("some client")
    assert slot.running


def test_nothing_broken_is_not_seen(slot):
    assert not faults(slot)._break()
    assert faults(slot, 3)._break()


def test_every_kind_comes_first_and_what_never_happened_is_named(slot, monkeypatch):
    made = faults(slot)
    kinds = {BROKEN, SERVER, "kill -9 of some client", "SIGSTOP of some client"}
    assert set(made.never) == kinds
    done = []
    for name, (weight, _) in list(made._kinds.items()):
        made._kinds[name] = weight, lambda name=name: done.append(name) or name != SERVER
    for _ in kinds:
        made.one()
    assert set(done) == kinds
    assert made.never == [SERVER]


def test_a_line_cut_off_by_a_kill_is_no_commit(slot):
    slot.journal.write_text('["g", 1, 20]\n["g", 2, 3')
    assert slot.acknowledged() == [(1, 20)]
