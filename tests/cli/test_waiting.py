"""`kgroup wait` and `kgroup watch`: conditions, differences, ends."""

import itertools
import json
import socket
import threading

import jsonschema
import pytest

from kgroup.admin.change.remove_members import Selection, execute_removal, plan_removal
from kgroup.admin.discovery import ClusterView
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from kgroup.client.transport import SocketTransport
from tests.cli.hook import hook

_numbers = itertools.count()


@pytest.fixture
def group():
    return f"waiting-{next(_numbers)}"


def later(cluster, group, selection, seconds=0.15):
    """Remove members a little later, as somebody else."""

    def remove():
        admin = ClusterView(SocketTransport(cluster.transport.settings))
        execute_removal(admin, plan_removal(admin, group, selection))
        admin.transport.close()

    timer = threading.Timer(seconds, remove)
    timer.start()
    return timer


class TestWait:
    @pytest.mark.parametrize(
        ("condition", "code"),
        [
            ("stable", ExitCode.OK),
            ("member=i-0", ExitCode.OK),
            ("members=1", ExitCode.OK),
            ("empty", ExitCode.UNREACHABLE),
            ("gone", ExitCode.UNREACHABLE),
            ("member=i-1", ExitCode.UNREACHABLE),
            ("members=2", ExitCode.UNREACHABLE),
        ],
    )
    def test_conditions_of_a_stable_group(self, on_cluster, cluster, group, condition, code):
        cluster.classic_group(group, "orders", {"i-0": [0, 1]})
        ran = on_cluster("wait", group, "--for", condition, "--stop-after", "50ms", "-o", "json")
        assert ran.code == code
        jsonschema.validate(ran.document, schema_for("wait"))
        (told,) = ran.document["data"]["groups"]
        assert (told["held"], told["state"]) == (code == ExitCode.OK, "Stable")

    def test_lag(self, on_cluster, cluster, group):
        cluster.commit(group, "orders", {0: 0})
        for condition in ("lag=0", " lag=0"):
            ran = on_cluster("wait", group, "--for", condition)
            assert ran.code == ExitCode.OK and "LAG" in ran.out.splitlines()[0]

    def test_waits(self, on_cluster, cluster, group):
        cluster.classic_group(group, "orders", {"i-0": [0]})
        timer = later(cluster, group, Selection(all=True))
        ran = on_cluster("wait", group, "--for", "empty", "--interval", "20ms", "--stop-after", "20s")
        timer.join()
        assert ran.code == ExitCode.OK

    @pytest.mark.parametrize("command", [("wait", "--for"), ("watch", "--until")], ids=lambda c: c[0])
    def test_the_look_at_the_end_still_has_its_time(self, on_cluster, cluster, group, command):
        """The transport's time was up at that very moment: a healthy broker was called unreachable."""
        cluster.classic_group(group, "orders", {"i-0": [0, 1]})
        name, option = command
        ran = on_cluster(name, group, option, "empty", "--stop-after", "1050ms", "--interval", "1s")
        assert ran.code == ExitCode.UNREACHABLE
        assert "is still Stable" in ran.err or "not empty after" in ran.err
        assert "seen" not in ran.err and "not_seen" not in ran.out

    def test_a_group_that_does_not_exist(self, on_cluster, group):
        for condition, code in (("empty", 0), ("gone", 0), ("stable", 7), ("lag=0", 7)):
            assert on_cluster("wait", group, "--for", condition, "--stop-after", "10ms").code == code

    @pytest.mark.parametrize("command", [("wait", "--for"), ("watch", "--until")], ids=lambda c: c[0])
    def test_a_mute_broker_holds_nobody_longer_than_asked(self, kgroup, group, command):
        """It takes connections and says nothing; one request alone may take --timeout, 30 s."""
        with socket.create_server(("127.0.0.1", 0)) as mute:
            where = f"127.0.0.1:{mute.getsockname()[1]}"
            argv = (command[0], group, command[1], "empty", "--stop-after", "1s", "-b", where, "-o", "json")
            ran = kgroup(*argv)
        assert ran.code == ExitCode.PARTIAL
        assert "did not answer ApiVersions in time" in ran.err

    @pytest.mark.parametrize("condition", ["calm", "lag", "lag=x", "stable=1", "member="])
    def test_wrong_usage(self, on_cluster, condition):
        assert on_cluster("wait", "g", "--for", condition).code == ExitCode.USAGE


def test_wait_gives_up_after_timeout_as_other_commands_do(on_cluster, cluster):
    """--timeout 5m was ignored, and the wait ended after 30 s."""
    cluster.classic_group("wait-timeout", "orders", {"i-0": [0]})
    ran = on_cluster("wait", "wait-timeout", "--for", "empty", "--timeout", "1s", "--interval", "100ms")
    assert ran.code == ExitCode.UNREACHABLE
    assert "wait-timeout is still Stable (1 member) after 1 s, not empty" in ran.err


class TestWatch:
    def events(self, ran):
        return [json.loads(line) for line in ran.out.splitlines()]

    def test_events_until_empty(self, on_cluster, cluster, group):
        cluster.classic_group(group, "orders", {"i-0": [0, 1]})
        timer = later(cluster, group, Selection(all=True))
        ran = on_cluster("watch", group, "--events", "--until", "empty", "--interval", "20ms")
        timer.join()
        assert ran.code == ExitCode.OK, ran.err
        events = self.events(ran)
        assert [e["event"] for e in events] == ["state_changed", "member_left"]
        assert events[0]["detail"] == {"before": "Stable", "after": "Empty"}
        assert (events[1]["instance_id"], events[1]["detail"]["held"]) == ("i-0", ["orders-0", "orders-1"])
        assert events[0]["schema"] == "kgroup/watch@1"

    def test_text_and_document(self, on_cluster, cluster, group):
        cluster.classic_group(group, "orders", {"i-0": [0, 1]})
        out = on_cluster("watch", group, "--until", "stable").out
        assert on_cluster("watch", group, "--until", "stable", "-o", "ndjson").out == ""
        assert out.startswith(f"{group}   classic   Stable")
        ran = on_cluster("watch", group, "--until", "stable", "-o", "json")
        jsonschema.validate(ran.document, schema_for("watch"))
        assert ran.document["data"]["groups"] == [{"group_id": group, "state": "Stable"}]

    def test_lines_of_text(self, on_cluster, cluster, group):
        cluster.classic_group(group, "orders", {"i-0": [0]})
        timer = later(cluster, group, Selection(all=True))
        ran = on_cluster("watch", group, "--until", "empty", "--interval", "20ms")
        timer.join()
        assert f"{group}  state_changed  Stable → Empty" in ran.out

    def test_time_is_up(self, on_cluster, group):
        ran = on_cluster("watch", group, "--until", "stable", "--stop-after", "20ms", "--interval", "10ms")
        assert ran.code == ExitCode.UNREACHABLE
        assert on_cluster("watch", group, "--stop-after", "10ms").code == ExitCode.OK

    def test_notify_posts_each_event(self, on_cluster, cluster, group):
        with hook() as (url, taken):
            cluster.classic_group(group, "orders", {"i-0": [0]})
            timer = later(cluster, group, Selection(all=True))
            argv = ("--events", "--until", "empty", "--interval", "20ms", "--notify", url)
            ran = on_cluster("watch", group, *argv)
            timer.join()
        assert [event["event"] for event in taken] == [e["event"] for e in self.events(ran)]

    def test_a_hook_that_fails_does_not_end_the_watch(self, on_cluster, cluster, group, monkeypatch):
        """It goes on, names what did not arrive, and its exit code says so."""
        monkeypatch.setattr("kgroup.cli.commands.watch.CLOSING_S", 0.2)
        cluster.classic_group(group, "orders", {"i-0": [0]})
        timer = later(cluster, group, Selection(all=True))
        argv = ("--events", "--until", "empty", "--interval", "20ms", "--notify", "http://127.0.0.1:1/")
        ran = on_cluster("watch", group, *argv)
        timer.join()
        assert ran.code == ExitCode.PARTIAL
        for event in self.events(ran):
            named = f"not delivered to http://127.0.0.1:1: {group} {event['event']} {event['time']}"
            assert named in ran.err
