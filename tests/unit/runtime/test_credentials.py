"""The file with what is kept of passwords: durable, for its owner only, and never half of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.log.files import CREDENTIALS
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.credentials import Credentials
from kgroup.security.scram import ScramCredential, ScramMechanism

SHA_256, SHA_512 = ScramMechanism
ONE = ScramCredential(b"salt", b"stored", b"server", 4096)
TWO = ScramCredential(b"pepper", b"kept", b"other", 8192)


def test_what_is_changed_is_there_after_a_restart(tmp_path: Path) -> None:
    kept = Credentials(tmp_path, "id")
    kept.change({("alice", SHA_256): ONE, ("alice", SHA_512): TWO, ("bob", SHA_256): ONE})
    kept.change({("bob", SHA_256): None, ("alice", SHA_256): TWO})
    again = Credentials(tmp_path, "id")
    assert again.known == kept.known == {("alice", SHA_256): TWO, ("alice", SHA_512): TWO}
    assert again.find("alice", SHA_512) == TWO
    assert again.find("bob", SHA_256) is None


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / f"{CREDENTIALS}.tmp").write_text("left by a crash, for all to read")
        Credentials(tmp_path).change({("alice", SHA_256): ONE})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / CREDENTIALS).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [CREDENTIALS]


def test_a_folder_without_users_has_no_file(tmp_path: Path) -> None:
    assert Credentials(tmp_path).known == {}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-10],
        lambda text: text.replace("8192", "4096"),
        lambda text: text.replace('"id"', '"other"'),
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: "[]",
        lambda text: "",
    ],
)
def test_damage_is_told_and_nobody_gets_in(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    Credentials(tmp_path, "id").change({("alice", SHA_256): TWO})
    path = tmp_path / CREDENTIALS
    path.write_text(damage(path.read_text()))
    with pytest.raises(StorageError, match="does not hold the users of this cluster"):
        Credentials(tmp_path, "id")


def test_a_cluster_does_not_start_with_a_damaged_one(tmp_path: Path) -> None:
    Cluster(tmp_path, offsets_partitions=1).close()
    (tmp_path / CREDENTIALS).write_text("{}")
    with pytest.raises(StorageError, match="does not hold the users"):
        Cluster(tmp_path, offsets_partitions=1)
    (tmp_path / CREDENTIALS).unlink()
    Cluster(tmp_path, offsets_partitions=1).close()


def test_what_cannot_be_written_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Credentials(tmp_path, "id")
    kept.change({("alice", SHA_256): ONE})

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kgroup.runtime.kept_file.replace_file", full)
    with pytest.raises(StorageError, match="No space left"):
        kept.change({("alice", SHA_256): None})
    assert kept.known == {("alice", SHA_256): ONE}
