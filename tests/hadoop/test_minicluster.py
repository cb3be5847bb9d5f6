"""The cluster itself: HDFS keeps what WebHDFS is given, YARN has its nodes, nothing outlives the block."""

import getpass
import json
import urllib.request
from pathlib import Path

import pytest

from .minicluster import Hadoop, hadoop

pytestmark = [pytest.mark.hadoop, pytest.mark.timeout(600)]


def ask(method: str, url: str, data: bytes = b"") -> bytes:
    """What a server answers; a redirect is followed by who asks (urllib follows GET alone)."""
    request = urllib.request.Request(url, data=data or None, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        told: bytes = answer.read()
    return told


def test_what_is_written_over_webhdfs_is_read_again(cluster: Hadoop):
    folder, me = f"{cluster.webhdfs}/webhdfs/v1/kept", f"user.name={getpass.getuser()}"
    created = f"{folder}/file?op=CREATE&noredirect=true&overwrite=true&{me}"
    where = json.loads(ask("PUT", created))["Location"]
    ask("PUT", where, b"kept bytes")
    assert ask("GET", f"{folder}/file?op=OPEN&offset=5&length=5&{me}") == b"bytes"
    (listed,) = json.loads(ask("GET", f"{folder}?op=LISTSTATUS&{me}"))["FileStatuses"]["FileStatus"]
    assert (listed["pathSuffix"], listed["length"]) == ("file", 10)


def test_clients_find_it_by_the_files_in_conf(cluster: Hadoop):
    told = (cluster.conf / "yarn-site.xml").read_text()
    assert f"<name>fs.defaultFS</name><value>{cluster.hdfs}</value>" in told
    assert "<name>yarn.resourcemanager.address</name>" in told


def test_it_ends_with_the_block(tmp_path: Path):
    with hadoop(tmp_path, settings={"dfs.blocksize": "1048576"}) as running:
        assert running.process.poll() is None
        told = (running.conf / "hdfs-site.xml").read_text()
        assert "<name>dfs.blocksize</name><value>1048576</value>" in told
    assert running.process.returncode is not None
