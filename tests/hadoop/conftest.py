"""One Hadoop for all tests in this folder: HDFS and YARN on loopback."""

from collections.abc import Iterator

import pytest

from .minicluster import Hadoop, absent, hadoop


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    """HDFS with one data node, and YARN with two node managers."""
    if lacking := absent():
        pytest.fail(f"the tests on Hadoop need {', '.join(lacking)} on PATH", pytrace=False)
    with hadoop(tmp_path_factory.mktemp("hadoop"), node_managers=2) as running:
        yield running
