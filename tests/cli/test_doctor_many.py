"""`kgroup doctor` on very many groups: a process of its own reads their history, and tells the same."""

import subprocess
import sys
import time

import pytest

from kgroup.admin.diagnose import histories as many
from kgroup.admin.diagnose.doctor import examine_all
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.histories import Past
from kgroup.admin.diagnose.read_ahead import Ahead
from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.describe import groups_only
from kgroup.domain import offsets_partition_of
from kgroup.errors import BrokerRefused, StorageError
from kgroup.history.sources.live import LiveTopic
from tests.cli.committed import commit_fully

EMPTY = [f"many-{number}" for number in range(20)]
NAMES = [*EMPTY, "many-classic", "many-away"]


@pytest.fixture(scope="module")
def names(cluster):
    cluster.create_topic("many", 2)
    for number, group in enumerate(EMPTY):
        commit_fully(cluster, group, "many", {0: (0, -1, ""), 1: (0, -1, f"of {number}")})
    cluster.classic_group("many-classic", "many", {"i-0": [0], "i-1": [1]})
    cluster.leave_for_now("many-away", cluster.consumer_member("many-away", "many", "s-0"), "s-0")
    return NAMES


@pytest.fixture
def view(cluster):
    return ClusterView(cluster.transport)


@pytest.fixture
def beside(monkeypatch):
    monkeypatch.setattr(many, "MANY", 2)


@pytest.fixture
def started(monkeypatch):
    """The processes that are started, as they are."""
    made = []

    class Noted(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    return made


def of_cluster(view, names, now_ms):
    return examine_all(view, names, now_ms=now_ms)


def test_it_tells_what_one_process_tells(view, names, started, monkeypatch):
    now_ms = time.time_ns() // 1_000_000
    alone = of_cluster(view, names, now_ms)
    assert started == []
    monkeypatch.setattr(many, "MANY", 2)
    assert of_cluster(view, names, now_ms) == alone
    (reader,) = started
    assert reader.poll() is not None
    told = {checkup.group.group_id: checkup for checkup in alone.checkups}
    assert {checkup.unseen for checkup in alone.checkups} == {()}
    assert any("s-0 left at" in fact for found in told["many-away"].findings for fact in found.evidence)


def test_each_group_has_its_own_history(view, names, beside):
    facts = [Facts(group, 0, 0, 0.0) for group in groups_only(view, names).values()]
    with Past(view, names) as past:
        place = {group: number for number, group in enumerate(past.in_order())}
        facts = past.add_to(sorted(facts, key=lambda each: place[each.group.group_id]))
    for each in facts:
        assert {event.group for event in each.history} == {each.group.group_id}
        assert each.state is not None


def test_a_process_that_was_killed_makes_no_group_healthy(view, names, beside, started):
    facts = [Facts(group, 0, 0, 0.0) for group in groups_only(view, names).values()]
    with Past(view, names) as past:
        past.in_order()
        (reader,) = started
        reader.kill()
        reader.wait()
        facts = past.add_to(facts)
    # What it had sent before may be told.
    untold = [each for each in facts if each.history is None]
    assert all("was killed" in unseen.message for each in untold for unseen in each.unseen)
    assert all(each.unseen for each in untold)


def test_a_script_that_asks_is_not_run_once_more(cluster, names, tmp_path):
    """As a library's caller has it: nothing around it that keeps it from running where it is imported."""
    script = tmp_path / "script.py"
    script.write_text(
        f"""
from kgroup.admin.diagnose import histories
from kgroup.admin.diagnose.doctor import examine_all
from kgroup.admin.discovery import ClusterView
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport

histories.MANY = 2
admin = ClusterView(SocketTransport(ConnectionSettings(parse_bootstrap({cluster.bootstrap!r}))))
found = examine_all(admin, {names!r}, window_ms=60_000, left_out=(), patience_s=0.0)
print(sum(not checkup.unseen for checkup in found.checkups))
"""
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{len(names)}\n", "", 0)


def test_one_partition_that_cannot_be_read_is_told_of_its_groups_alone(cluster, names):
    topic = LiveTopic(cluster.transport)
    missing, number = sorted({offsets_partition_of(name, 4) for name in names})[:2]
    first, last = (next(n for n in names if offsets_partition_of(n, 4) == p) for p in (missing, number))
    del topic.leaders[missing]
    topic._looked_again = True
    ahead = Ahead(topic, {missing: [first], number: [last]})
    try:
        with pytest.raises(BrokerRefused, match=f"__consumer_offsets-{missing} cannot be read"):
            ahead.look_into(missing)
        assert list(ahead.look_into(number)) == [last]
        with pytest.raises(StorageError, match="was killed"):
            ahead.look_into(number + 1)
    finally:
        ahead.close()
