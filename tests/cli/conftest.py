"""Run the command line in this process, with a config and data folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served
from tests.ran import Ran, ran

Kgroup = Callable[..., Ran]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("BOOTSTRAP_SERVER", "LOCAL", "CONTEXT", "COMMAND_CONFIG", "OUTPUT"):
        monkeypatch.delenv(f"KGROUP_{name}", raising=False)


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "kgroup" / "config.yaml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def kgroup(capsys: pytest.CaptureFixture[str]) -> Kgroup:
    def call(*argv: str) -> Ran:
        return ran(capsys, *argv)

    return call


@pytest.fixture(scope="session")
def cluster() -> Iterator[Client]:
    """A cluster with topic orders (6 partitions), shared by the tests; each uses groups of its own."""
    # On a busy machine the tests outlast the ten minutes after which a group that is empty may be deleted.
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.retention.check.interval.ms": "86400000"}
    with served(Cluster(config=settings, offsets_partitions=4)) as bootstrap:
        client = Client(bootstrap)
        client.create_topic("orders", 6)
        yield client
        client.close()


@pytest.fixture
def on_cluster(cluster: Client, kgroup: Kgroup) -> Kgroup:
    """`kgroup`, told by flag where the cluster is."""

    def call(*argv: str) -> Ran:
        return kgroup(*argv, "-b", cluster.bootstrap)

    return call
