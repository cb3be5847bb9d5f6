"""The tree in memory answers as ZooKeeper does: versions, ephemerals, multis, watches that see one change."""

import pytest

from kgroup.zookeeper.store.operations import (
    Change,
    Check,
    Children,
    Create,
    Delete,
    Exists,
    Failure,
    Get,
    Node,
    SetData,
    Sync,
)
from kgroup.zookeeper.store.tree import REQUEST_LIMIT, Tree


class Client:
    """A session and what its watches saw."""

    def __init__(self, tree, chroot=""):
        self.tree, self.saw = tree, []
        self.session = tree.open(lambda path, change: self.saw.append((path, change)), chroot)

    def ask(self, *ops, watch=False, now_ms=0):
        return self.tree.ask(self.session, ops, watch=watch, now_ms=now_ms)


@pytest.fixture
def tree():
    return Tree()


@pytest.fixture
def one(tree):
    return Client(tree)


@pytest.fixture
def other(tree):
    return Client(tree)


def data_of(client, path):
    (node,) = client.ask(Get(path))
    return node.data if isinstance(node, Node) else node


def test_a_node_has_versions_and_times(one):
    one.ask(Create("/a", b"1"), now_ms=5)
    assert one.ask(SetData("/a", b"2", 0), now_ms=9)[0].version == 1
    (node,) = one.ask(Get("/a"))
    assert (node.data, node.stat.version, node.stat.created_ms, node.stat.modified_ms) == (b"2", 1, 5, 9)
    assert one.ask(Delete("/a", 0)) == (Failure.BAD_VERSION,)
    assert one.ask(Delete("/a", 1)) == (None,)
    one.ask(Create("/a", b""))
    assert one.ask(Exists("/a"))[0].version == 0, "a node made anew begins at 0: no fence (LC-18)"


@pytest.mark.parametrize(
    ("op", "failure"),
    [
        (Create("/a/b/c", b""), Failure.NO_NODE),
        (Create("/a", b""), Failure.NODE_EXISTS),
        (Create("/e/child", b""), Failure.NO_CHILDREN_FOR_EPHEMERALS),
        (Delete("/p"), Failure.NOT_EMPTY),
        (Delete("/"), Failure.BAD_ARGUMENTS),
        (Delete("/none"), Failure.NO_NODE),
        (SetData("/a", b"", 7), Failure.BAD_VERSION),
        (Check("/a", 7), Failure.BAD_VERSION),
        (Check("/none", 0), Failure.NO_NODE),
        (Get("/none"), Failure.NO_NODE),
        (Children("/none"), Failure.NO_NODE),
        (Get("relative"), Failure.BAD_ARGUMENTS),
        (Get("/a/../b"), Failure.BAD_ARGUMENTS),
        (Create("/a/", b""), Failure.BAD_ARGUMENTS),
        (Create("/a\0b", b""), Failure.BAD_ARGUMENTS),
    ],
)
def test_what_is_refused_says_why(one, op, failure):
    one.ask(Create("/a", b""), Create("/e", b"", ephemeral=True), Create("/p", b""), Create("/p/child", b""))
    assert one.ask(op) == (failure,)


def test_a_multi_is_done_as_a_whole_or_not_at_all(one, other):
    """LC-18: the fence is a check in front of the writes."""
    one.ask(Create("/epoch", b"0"), Create("/x", b"old"), Create("/gone", b""))
    other.ask(Get("/x"), Exists("/new"), watch=True)
    other.ask(Children("/"), watch=True)
    failed = one.ask(
        SetData("/x", b"new"),
        Create("/new", b""),
        Delete("/gone"),
        Check("/epoch", 4),
        Delete("/x"),
    )
    rolled = Failure.ROLLED_BACK
    assert failed == (rolled, rolled, rolled, Failure.BAD_VERSION, rolled)
    assert one.ask(Children("/")) == (("epoch", "gone", "x"),)
    assert one.ask(Get("/x"))[0].stat.version == 0 and data_of(one, "/x") == b"old"
    assert other.saw == []
    assert one.ask(Check("/epoch", 0), Create("/new", b""), Create("/new/child", b"")) == (None, None, None)
    assert other.saw == [("/new", Change.CREATED), ("/", Change.CHILDREN)]


def test_ephemerals_end_with_their_session(tree, one, other):
    """LC-15, LC-20: whoever watches hears of it."""
    one.ask(Create("/coordinator", b"1", ephemeral=True))
    (stat,) = other.ask(Exists("/coordinator"), watch=True)
    assert stat.owner == one.session
    tree.expire(one.session)
    assert other.saw == [("/coordinator", Change.DELETED)]
    assert one.ask(Get("/")) == (Failure.SESSION_EXPIRED,)
    assert not tree.alive(one.session) and tree.alive(other.session)
    tree.expire(one.session)
    assert other.ask(Create("/coordinator", b"2", ephemeral=True)) == (None,)


def test_a_deleted_ephemeral_is_not_its_sessions_any_more(tree, one, other):
    one.ask(Create("/n", b"", ephemeral=True))
    other.ask(Delete("/n"))
    other.ask(Create("/n", b"mine"))
    tree.expire(one.session)
    assert data_of(other, "/n") == b"mine"


def test_a_watch_sees_one_change_and_is_gone(one, other):
    """LC-34: data, children and absence are watched apart."""
    other.ask(Exists("/a"), watch=True)
    one.ask(Create("/a", b""))
    one.ask(SetData("/a", b"1"))
    assert other.saw == [("/a", Change.CREATED)]
    other.ask(Get("/a"), watch=True)
    other.ask(Children("/a"), watch=True)
    one.ask(Create("/a/b", b""))
    one.ask(Create("/a/c", b""))
    one.ask(SetData("/a", b"2"))
    assert other.saw[1:] == [("/a", Change.CHILDREN), ("/a", Change.DATA)]


def test_a_node_watched_twice_is_told_deleted_once(one, other):
    one.ask(Create("/a", b""))
    other.ask(Get("/a"), Children("/a"), watch=True)
    one.ask(Delete("/a"))
    assert other.saw == [("/a", Change.DELETED)]


def test_a_missing_node_is_watched_by_exists_only(one, other):
    assert other.ask(Get("/a"), Children("/a"), watch=True) == (Failure.NO_NODE,) * 2
    one.ask(Create("/a", b""))
    assert other.saw == []


def test_watches_are_lost_with_a_connection(tree, one, other):
    one.ask(Create("/a", b""))
    other.ask(Get("/a"), Children("/"), watch=True)
    assert tree.forget_watches(other.session) == ["/a", "/"]
    one.ask(SetData("/a", b"1"), Create("/b", b""))
    assert other.saw == []


def test_a_request_too_long_loses_its_connection(one):
    ops = [Create("/a", b"x" * REQUEST_LIMIT)]
    assert one.ask(*ops) == (Failure.CONNECTION_LOSS,)
    assert one.ask(Children("/")) == ((),)


def test_paths_below_a_chroot(tree, one):
    """LC-16: a client with a chroot sees its part of the tree, watches too."""
    one.ask(Create("/kafka", b"root"))
    inner = Client(tree, "/kafka")
    inner.ask(Exists("/a"), watch=True)
    inner.ask(Children("/"), watch=True)
    one.ask(Create("/kafka/a", b"1"))
    assert inner.saw == [("/a", Change.CREATED), ("/", Change.CHILDREN)]
    assert data_of(inner, "/a") == b"1" and data_of(inner, "/") == b"root"
    assert [path for path, _ in tree.walk("/kafka")] == ["/kafka", "/kafka/a"]
    inner.ask(Get("/a"), watch=True)
    assert tree.forget_watches(inner.session) == ["/a"]


def test_missing_rights(tree, one):
    one.ask(Create("/a", b""))
    tree.deny("/a")
    assert one.ask(Get("/a"), Children("/a"), Sync("/a")) == (Failure.NO_AUTH, Failure.NO_AUTH, None)
    assert one.ask(Exists("/a"))[0].version == 0
    assert one.ask(SetData("/a", b"")) == (Failure.NO_AUTH,)


def test_reads_and_writes_do_not_mix(one):
    with pytest.raises(TypeError):
        one.ask(Get("/"), Create("/a", b""))
