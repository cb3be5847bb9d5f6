"""A data folder has one owner, who can be found, and one cluster id."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgroup.errors import StorageError
from kgroup.log.directory import LAYOUT_VERSION, DataDirectory, Owner, owner_of


def test_a_new_folder_gets_an_identity_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with DataDirectory(path, command="kgroup serve") as directory:
        cluster_id = directory.cluster_id
    assert len(cluster_id) == 22
    with DataDirectory(path, command="kgroup serve") as directory:
        assert directory.cluster_id == cluster_id
    with DataDirectory(tmp_path / "other", command="x", cluster_id="mine") as directory:
        assert directory.cluster_id == "mine"


def test_the_owner_can_be_found_while_it_lives(tmp_path: Path) -> None:
    assert owner_of(tmp_path / "nothing") is None
    directory = DataDirectory(tmp_path, command="kgroup serve")
    assert owner_of(tmp_path) == Owner(os.getpid(), "kgroup serve", "")
    directory.announce("127.0.0.1:19092")
    assert owner_of(tmp_path) == Owner(os.getpid(), "kgroup serve", "127.0.0.1:19092")
    directory.announce("[::1]:1")
    assert owner_of(tmp_path) == Owner(os.getpid(), "kgroup serve", "[::1]:1")
    directory.close()
    directory.close()
    assert owner_of(tmp_path) is None


def test_a_second_opener_learns_who_holds_the_folder(tmp_path: Path) -> None:
    with DataDirectory(tmp_path, command="kgroup serve", bootstrap="127.0.0.1:19092"):
        with pytest.raises(StorageError) as caught:
            DataDirectory(tmp_path, command="kgroup reset")
        assert caught.value.message == (
            f"{tmp_path} is in use by process {os.getpid()} (kgroup serve, serving at 127.0.0.1:19092)"
        )
        assert "talk to it instead" in (caught.value.hint or "")
    DataDirectory(tmp_path, command="kgroup reset").close()


def test_a_killed_owner_leaves_the_folder_free(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from kgroup.log.directory import DataDirectory;"
        "d = DataDirectory(Path(sys.argv[1]), command='victim'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert "victim" in (tmp_path / ".lock").read_text()
    assert owner_of(tmp_path) is None
    DataDirectory(tmp_path, command="next").close()


def test_a_holder_that_has_not_said_who_it_is(tmp_path: Path) -> None:
    with DataDirectory(tmp_path, command="x"):
        (tmp_path / ".lock").write_text("{")
        assert owner_of(tmp_path) == Owner(0, "starting or unknown")
        with pytest.raises(StorageError, match="in use by another process"):
            DataDirectory(tmp_path, command="y")


def test_a_folder_keeps_the_id_of_its_broker(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "new", command="x", node_id=7) as directory:
        assert directory.node_id == 7
    with DataDirectory(tmp_path / "new", command="x") as directory:
        assert directory.node_id == 7
    with pytest.raises(StorageError, match="belongs to broker 7, not 0"):
        DataDirectory(tmp_path / "new", command="x", node_id=0)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "meta.properties").write_text(f"layout.version={LAYOUT_VERSION}\ncluster.id=a\n")
    for given, then in ((None, 0), (3, 3), (None, 3), (3, 3)):
        with DataDirectory(tmp_path / "old", command="x", node_id=given) as directory:
            assert (directory.node_id, directory.cluster_id) == (then, "a")
    with pytest.raises(StorageError, match="belongs to broker 3, not 0"):
        DataDirectory(tmp_path / "old", command="x", node_id=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("layout.version=3\ncluster.id=a\n", "has layout version 3, this kgroup knows up to 2"),
        ("layout.version=1\ncluster.id=a\n", "has layout version 1, this kgroup reads 2"),
        ("cluster.id=a\n", "lacks a layout.version or cluster.id"),
        ("layout.version=x\ncluster.id=a\n", "lacks a layout.version or cluster.id"),
        ("layout.version=1\ncluster.id=a\nnode.id=x\n", "a node.id that is none"),
    ],
)
def test_a_folder_that_is_not_ours_is_refused_and_set_free(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(StorageError, match=message):
        DataDirectory(tmp_path, command="x")
    assert owner_of(tmp_path) is None


def test_another_clusters_folder_is_refused(tmp_path: Path) -> None:
    DataDirectory(tmp_path, command="x", cluster_id="one").close()
    with pytest.raises(StorageError, match="belongs to cluster one, not two"):
        DataDirectory(tmp_path, command="x", cluster_id="two")


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be used: File exists"):
        DataDirectory(tmp_path / "file", command="x")
    with pytest.raises(StorageError, match="cannot be used: Not a directory"):
        owner_of(tmp_path / "file")
