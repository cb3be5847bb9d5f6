"""The journal on disk: numbering, crashes, damage."""

from __future__ import annotations

import contextlib
import stat
from itertools import count
from pathlib import Path

import pytest

from kgroup.admin.journal import Journal
from kgroup.client.retry import OutcomeUnknown
from kgroup.errors import StorageError, Unreachable


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    ticks = count(1000)
    return Journal(tmp_path / "deep" / "journal.jsonl", now_ms=lambda: next(ticks))


def test_changes_are_numbered_and_come_back_in_order(journal: Journal) -> None:
    assert journal.entries() == ()
    first = journal.begin("delete", "c1", {"groups": ["g"]}, {"offsets": {}})
    second = journal.begin("remove-members", None, {}, {})
    journal.end(first, [{"result": "deleted"}])
    assert (first, second) == ("j-0001", "j-0002")
    done, cut_off = journal.entries()
    assert (done.command, done.results, done.time_ms, done.end_ms) == (
        "delete",
        ({"result": "deleted"},),
        1000,
        1002,
    )
    assert cut_off.results is None
    assert journal.find("last") == cut_off
    assert journal.find("j-0001") == done
    assert journal.find("j-9999") is None


def test_a_change_ends_however_it_ends(journal: Journal) -> None:
    """What has a result keeps it; of the others the code says why they have none."""
    named = [{"group_id": "a"}, {"group_id": "b"}]
    for error, code in (
        (None, None),
        (Unreachable("nobody answers"), "UNREACHABLE"),
        (OutcomeUnknown("no reply"), "OUTCOME_UNKNOWN"),
        (KeyboardInterrupt(), "INTERRUPTED"),
        (ValueError("a fault"), "INTERRUPTED"),
    ):
        with (
            contextlib.suppress(Unreachable, KeyboardInterrupt, ValueError),
            journal.change("delete", "c1", {}, {}, named) as entry,
        ):
            assert journal.entries()[-1].results is None, "begun before anything is asked for"
            entry.results.append({"group_id": "a", "result": "deleted"})
            if error is not None:
                raise error
            entry.results.append({"group_id": "b", "result": "deleted"})
        first, second = journal.entries()[-1].results or ()
        assert first == {"group_id": "a", "result": "deleted"}
        assert (second["group_id"], second.get("error_code")) == ("b", code)
        assert second["result"] == ("failed" if error else "deleted")


def test_only_the_user_may_read_it(journal: Journal) -> None:
    journal.begin("delete", None, {}, {})
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600


def test_a_line_cut_short_by_a_crash_is_dropped_and_written_over(journal: Journal) -> None:
    journal.begin("delete", None, {}, {})
    with journal.path.open("ab") as file:
        file.write(b'{"id": "j-0002", "pha')
    assert [entry.id for entry in journal.entries()] == ["j-0001"]
    assert journal.begin("delete", None, {}, {}) == "j-0002"
    assert [entry.id for entry in journal.entries()] == ["j-0001", "j-0002"]


def test_damage_in_the_middle_is_said(journal: Journal) -> None:
    journal.begin("delete", None, {}, {})
    journal.path.write_bytes(b"garbage\n" + journal.path.read_bytes())
    with pytest.raises(StorageError, match="line 1"):
        journal.entries()


def test_the_default_is_in_the_state_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Journal.default().path.name == "journal.jsonl"
    assert Journal.default().path.parent.name == "kgroup"
