"""An ensemble of one in memory: sessions, ephemerals, versions, one-shot watches, multi; no I/O, no clock.

Source: ZooKeeper 3.9's behaviour, as far as `operations` can request it. The caller decides when a session
has been silent for too long, and expires it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kgroup.zookeeper.store import operations as zk

REQUEST_LIMIT = 1024 * 1024 - 1
"""ZooKeeper's jute.maxbuffer: it cuts the connection instead of answering a longer request."""

_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[^/\x00-\x1f\ud800-\udfff]+)+")
Watcher = Callable[[str, zk.Change], None]
_Undo = Callable[[], None]
_Fired = tuple[str, zk.Change]


@dataclass(slots=True)
class _Znode:
    data: bytes
    owner: int
    created_ms: int
    modified_ms: int
    version: int = 0
    children: set[str] = field(default_factory=set)

    def stat(self) -> zk.Stat:
        return zk.Stat(self.version, self.owner, self.created_ms, self.modified_ms)


@dataclass(slots=True)
class _Session:
    watcher: Watcher | None
    chroot: str
    ephemerals: dict[str, None] = field(default_factory=dict)


class Tree:
    """Nodes by path, and the sessions that access them; every answer is final when `ask` returns."""

    def __init__(self) -> None:
        self._nodes = {"/": _Znode(b"", 0, 0, 0)}
        self._sessions: dict[int, _Session] = {}
        self._opened = 0
        self._data_watches: dict[str, dict[int, None]] = {}
        self._child_watches: dict[str, dict[int, None]] = {}
        self._denied: set[str] = set()

    def open(self, watcher: Watcher | None = None, chroot: str = "") -> int:
        """Open a session with paths below `chroot`; `watcher` receives changes before writes return."""
        self._opened += 1
        self._sessions[self._opened] = _Session(watcher, chroot)
        return self._opened

    def expire(self, session: int) -> None:
        """End a session, its ephemeral nodes and its watches; all its later calls fail."""
        ended = self._sessions.pop(session, None)
        if ended is None:
            return
        self._forget(session)
        fired: list[_Fired] = []
        for path in ended.ephemerals:
            self._remove(path)
            fired += _deletion(path)
        self._fire(fired)

    def alive(self, session: int) -> bool:
        """Return whether the session is open."""
        return session in self._sessions

    def forget_watches(self, session: int) -> list[str]:
        """Drop a session's watches, as a client that lost its connection does; return the paths."""
        chroot = self._sessions[session].chroot if session in self._sessions else ""
        return [_outside(path, chroot) for path in self._forget(session)]

    def deny(self, path: str) -> None:
        """Answer NO_AUTH to reads and writes of this node, except `Exists`, which needs no right."""
        self._denied.add(path)

    def walk(self, path: str = "/") -> Iterator[tuple[str, zk.Node]]:
        """Yield the node and everything below it, parents first and sorted; needs no session."""
        node = self._nodes.get(path)
        if node is None:
            return
        yield path, zk.Node(node.data, node.stat())
        for name in sorted(node.children):
            yield from self.walk(f"{path.rstrip('/')}/{name}")

    def ask(
        self,
        session: int,
        ops: Sequence[zk.Read] | Sequence[zk.Write],
        *,
        watch: bool = False,
        now_ms: int = 0,
    ) -> tuple[zk.Result, ...]:
        """Execute reads one by one, or writes as one multi; with `watch` each read leaves a watch."""
        known = self._sessions.get(session)
        if known is None:
            return (zk.Failure.SESSION_EXPIRED,) * len(ops)
        if sum(map(_size, ops)) > REQUEST_LIMIT:
            return (zk.Failure.CONNECTION_LOSS,) * len(ops)
        reads = [op for op in ops if isinstance(op, zk.Read)]
        writes = [op for op in ops if isinstance(op, zk.Write)]
        if reads and writes:
            raise TypeError("reads and writes cannot be asked for together")
        if writes:
            return self._multi(session, writes, now_ms)
        return tuple(self._read(session, op, watch) for op in reads)

    def _read(self, session: int, op: zk.Read, watch: bool) -> zk.Result:
        if not _is_path(op.path):
            return zk.Failure.BAD_ARGUMENTS
        path = self._sessions[session].chroot + op.path if op.path != "/" else self._root_of(session)
        if isinstance(op, zk.Sync):
            return None
        if path in self._denied and not isinstance(op, zk.Exists):
            return zk.Failure.NO_AUTH
        node = self._nodes.get(path)
        if node is None:
            if watch and isinstance(op, zk.Exists):
                self._data_watches.setdefault(path, {})[session] = None
            return zk.Failure.NO_NODE
        if watch:
            watches = self._child_watches if isinstance(op, zk.Children) else self._data_watches
            watches.setdefault(path, {})[session] = None
        if isinstance(op, zk.Children):
            return tuple(sorted(node.children))
        return node.stat() if isinstance(op, zk.Exists) else zk.Node(node.data, node.stat())

    def _root_of(self, session: int) -> str:
        return self._sessions[session].chroot or "/"

    def _multi(self, session: int, ops: list[zk.Write], now_ms: int) -> tuple[zk.Result, ...]:
        undo: list[_Undo] = []
        fired: list[_Fired] = []
        results: list[zk.Result] = []
        for position, op in enumerate(ops):
            result = self._write(session, op, now_ms, undo, fired)
            if isinstance(result, zk.Failure):
                for step in reversed(undo):
                    step()
                failed: list[zk.Result] = [zk.Failure.ROLLED_BACK] * len(ops)
                failed[position] = result
                return tuple(failed)
            results.append(result)
        self._fire(fired)
        return tuple(results)

    def _write(
        self, session: int, op: zk.Write, now_ms: int, undo: list[_Undo], fired: list[_Fired]
    ) -> zk.Result:
        if not _is_path(op.path):
            return zk.Failure.BAD_ARGUMENTS
        path = self._sessions[session].chroot + op.path if op.path != "/" else self._root_of(session)
        if path in self._denied:
            return zk.Failure.NO_AUTH
        if isinstance(op, zk.Create):
            return self._create(session, path, op, now_ms, undo, fired)
        node = self._nodes.get(path)
        if node is None:
            return zk.Failure.NO_NODE
        if op.version not in (zk.ANY_VERSION, node.version):
            return zk.Failure.BAD_VERSION
        if isinstance(op, zk.SetData):
            before = (node.data, node.version, node.modified_ms)
            undo.append(lambda: self._restore(path, *before))
            node.data, node.version, node.modified_ms = op.data, node.version + 1, now_ms
            fired.append((path, zk.Change.DATA))
            return node.stat()
        if isinstance(op, zk.Delete):
            return self._delete(path, node, undo, fired)
        return None

    def _create(
        self, session: int, path: str, op: zk.Create, now_ms: int, undo: list[_Undo], fired: list[_Fired]
    ) -> zk.Result:
        if path in self._nodes:
            return zk.Failure.NODE_EXISTS
        parent = self._nodes.get(_parent(path))
        if parent is None:
            return zk.Failure.NO_NODE
        if parent.owner:
            return zk.Failure.NO_CHILDREN_FOR_EPHEMERALS
        self._put(path, _Znode(op.data, session if op.ephemeral else 0, now_ms, now_ms))
        undo.append(lambda: self._remove(path))
        fired += [(path, zk.Change.CREATED), (_parent(path), zk.Change.CHILDREN)]
        return None

    def _delete(self, path: str, node: _Znode, undo: list[_Undo], fired: list[_Fired]) -> zk.Result:
        if path == "/":
            return zk.Failure.BAD_ARGUMENTS
        if node.children:
            return zk.Failure.NOT_EMPTY
        self._remove(path)
        undo.append(lambda: self._put(path, node))
        fired += _deletion(path)
        return None

    def _forget(self, session: int) -> list[str]:
        paths: dict[str, None] = {}
        for watches in (self._data_watches, self._child_watches):
            for path in [path for path, sessions in watches.items() if session in sessions]:
                paths[path] = None
                del watches[path][session]
                if not watches[path]:
                    del watches[path]
        return list(paths)

    def _put(self, path: str, node: _Znode) -> None:
        self._nodes[path] = node
        self._nodes[_parent(path)].children.add(path.rpartition("/")[2])
        if node.owner in self._sessions:
            self._sessions[node.owner].ephemerals[path] = None

    def _remove(self, path: str) -> None:
        node = self._nodes.pop(path)
        self._nodes[_parent(path)].children.discard(path.rpartition("/")[2])
        if node.owner in self._sessions:
            self._sessions[node.owner].ephemerals.pop(path, None)

    def _restore(self, path: str, data: bytes, version: int, modified_ms: int) -> None:
        node = self._nodes[path]
        node.data, node.version, node.modified_ms = data, version, modified_ms

    def _fire(self, fired: list[_Fired]) -> None:
        """Notify watchers; a session is notified once per change, even if it watched node and children."""
        for path, change in fired:
            notified: dict[int, None] = {}
            if change is not zk.Change.CHILDREN:
                notified |= self._data_watches.pop(path, {})
            if change in (zk.Change.CHILDREN, zk.Change.DELETED):
                notified |= self._child_watches.pop(path, {})
            for session in notified:
                known = self._sessions.get(session)
                if known is not None and known.watcher is not None:
                    known.watcher(_outside(path, known.chroot), change)


def _deletion(path: str) -> list[_Fired]:
    return [(path, zk.Change.DELETED), (_parent(path), zk.Change.CHILDREN)]


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _outside(path: str, chroot: str) -> str:
    return path[len(chroot) :] or "/"


def _size(op: zk.Read | zk.Write) -> int:
    data = op.data if isinstance(op, zk.Create | zk.SetData) else b""
    return len(op.path.encode("utf-8", "surrogatepass")) + len(data)


def _is_path(path: str) -> bool:
    return path == "/" or _PATH.fullmatch(path) is not None
