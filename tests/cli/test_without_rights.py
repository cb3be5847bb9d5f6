"""Every command line that asks a cluster, by a principal without any right: 6, and the right that is missing.

The interop suite plays every command on a real Kafka with exactly the rights it needs, and with each of them
missing (test_rights_of_commands.py). Here are their options, each of which may ask for something else first.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.rights.needs import COMMANDS
from kgroup.admin.topics import create_topic
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.cli.exit_codes import ExitCode
from kgroup.domain import OffsetAndMetadata, TopicPartition
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from tests.cli.conftest import Kgroup
from tests.cli.live import served

LACKS = re.compile(r"lacks \w+ on (Cluster|(Group|Topic|TransactionalId) \S+)")
LINES = """
list
list g*
list --state stable
list --members --topic t
describe g
describe 'g*'
describe --all-groups
describe g --section members
lag g
lag g --by-topic
lag g --time
lag g --rate 10ms
lag g --fail-above 10
lag 'g*' --fail-above 10
watch g --stop-after 50ms
watch g --until empty --stop-after 50ms
watch g --lag --stop-after 50ms
watch g --events --stop-after 50ms
wait g --for lag=0 --stop-after 50ms
wait g --for empty --stop-after 50ms
wait g --for static --stop-after 50ms
doctor g
doctor 'g*'
doctor --all-groups
doctor --kafka 5
doctor g --kafka 5
doctor g --rights --for describe
explain '[Consumer clientId=c, groupId=g] (Re-)joining group'
coordinator g
coordinator g h
remove-members g --all
remove-members g --all --execute --yes
remove-members g --instance-id i --execute --yes
remove-members g --member-id m --execute --yes
remove-members g --left-only --execute --yes
reset-offsets g --all-topics --to-earliest
reset-offsets g --all-topics --to-latest --execute --yes
reset-offsets g --topic t --to-offset 3 --execute --yes
reset-offsets g --topic t --shift-by -1 --execute --yes
reset-offsets g --topic t --by-duration 1h --execute --yes
reset-offsets g --all-topics --to-group other --execute --yes
reset-offsets g --from-file offsets.csv --execute --yes
offsets export g
offsets export g --topic t
offsets export 'g*'
offsets import offsets.json
offsets import offsets.json --execute --yes
offsets delete g --topic t
offsets delete g --topic t --execute --yes
offsets delete g --all-topics --execute --yes
offsets clone g g2
offsets clone g g2 --execute --yes
delete g
delete g --execute --yes
delete 'g*' --execute --yes
delete --stale-for 0s --execute --yes
delete --restore offsets.json --execute --yes
config get g
config set g consumer.session.timeout.ms=45000
config set g consumer.session.timeout.ms=45000 --execute --yes
config set g --unset consumer.session.timeout.ms --execute --yes
regex check 't.*'
upgrade plan g
upgrade plan g --pattern 't.*'
upgrade plan g --read-log
upgrade plan g --static
upgrade plan g --static --read-log
upgrade plan 'g*'
upgrade plan g h --read-log
upgrade plan --all-groups --html plan.html
upgrade plan --topic t
upgrade plan g --topic t
upgrade plan g h --pattern 't.*'
upgrade execute g --yes
upgrade execute g --yes --accept-unknown
upgrade watch g --stuck-after 1s
upgrade run waves.yaml
upgrade run waves.yaml --execute --yes
upgrade rehearse g
upgrade rehearse g h
upgrade rehearse --all-groups
downgrade plan g
downgrade execute g --yes
downgrade watch g --stuck-after 1s
replay-log
replay-log g
replay-log --raw
replay-log --at 10
replay-log --verify
replay-log --verify g
replay-log --html page.html
blame g
capture --out captured --once
record recorded --stop-after 1s
offsets-topic stats
offsets-topic top
cluster status
cluster topics
cluster topics --internal
cluster create-topic new
cluster acl add --principal User:a --operation Read --topic t
cluster acl list
cluster acl remove --principal User:a
cluster acl remove --principal User:a --execute --yes
cluster user add eve --password-file password.txt
cluster user list
cluster user list eve
cluster user remove eve
member run g --topic t --stop-after 50ms
member run g --topic t --stop-after 50ms --protocol classic
member register g --instance-id a
member unregister g --instance-id a
""".strip().splitlines()
ELSEWHERE = {"pipeline run": "needs Spark; it reads as replay-log does"}


@pytest.fixture(scope="module")
def strange() -> Iterator[str]:
    """A cluster with a group, on which who comes by TCP may do nothing."""
    rights = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin"}
    cluster = Cluster(config=rights, offsets_partitions=1)
    owner = EmbeddedTransport(cluster)
    create_topic(ClusterView(owner), "t", 1)
    at = {TopicPartition("t", 0): OffsetAndMetadata(0)}
    codes, failed = store(ClusterView(owner), "g", at)
    assert not failed and set(codes.values()) == {0}
    with served(cluster) as bootstrap:
        yield bootstrap


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the lines name."""
    monkeypatch.chdir(tmp_path)
    offsets = [{"topic": "t", "partition": 0, "committed_offset": 0}]
    text = {"data": {"groups": [{"group_id": "g", "offsets": offsets}]}}
    Path("offsets.json").write_text(json.dumps(text))
    Path("offsets.csv").write_text("topic,partition,offset\nt,0,0\n")
    Path("waves.yaml").write_text("waves: [{groups: [g]}]\n")
    Path("password.txt").write_text("eve-secret")
    Path("password.txt").chmod(0o600)


RUN_ON = (
    "watch",
    "wait",
    "record",
    "member run",
    "upgrade watch",
    "upgrade execute",
    "upgrade run",
    "downgrade ",
)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("line", LINES)
def test_the_missing_right_is_named(line: str, strange: str, kgroup: Kgroup) -> None:
    # One that runs on refuses a --timeout that would not end it.
    bounded = () if line.startswith(RUN_ON) and "--no-watch" not in line else ("--timeout", "60s")
    told = kgroup(*shlex.split(line), "-b", strange, *bounded)
    assert LACKS.search(told.err), told.err + told.out
    assert told.code == ExitCode.NOT_AUTHORISED, told.err
    assert "Traceback" not in told.err


def test_every_command_that_needs_a_right_is_there() -> None:
    said = {name for name in COMMANDS if any(f"{line} ".startswith(f"{_line(name)} ") for line in LINES)}
    assert said | ELSEWHERE.keys() == COMMANDS.keys()


def _line(name: str) -> str:
    """`lag --time` is a line of its own in the table of rights."""
    return name if " --" not in name else name.partition(" --")[0]
