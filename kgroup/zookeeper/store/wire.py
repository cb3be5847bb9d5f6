"""ZooKeeper's protocol from the server's side, for the operations supported here; no I/O.

Source: ZooKeeper 3.9, zookeeper.jute and OpCode: big-endian; texts and buffers follow their length (-1:
null).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from kgroup.errors import DecodeError
from kgroup.zookeeper.store import operations as zk
from kgroup.zookeeper.wire import codec

PASSWORD = bytes(16)
WATCH_XID = -1
CONNECTED = 3


class Op(IntEnum):
    """Types of requests; any other is answered UNIMPLEMENTED."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    CLOSE = -11


class Code(IntEnum):
    """Errors as the protocol numbers them."""

    OK = 0
    ROLLED_BACK = -2
    CONNECTION_LOSS = -4
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112


_CHANGES = {zk.Change.CREATED: 1, zk.Change.DELETED: 2, zk.Change.DATA: 3, zk.Change.CHILDREN: 4}


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first frame of a connection; a `session` other than 0 is to be resumed."""

    timeout_ms: int
    session: int
    read_only_known: bool


@dataclass(frozen=True, slots=True)
class Request:
    """A request: a read is one operation, writes are one or a multi's; PING and CLOSE have none.

    One that is not `known` has a type, or wants a kind of node, that is not supported here.
    """

    xid: int
    type: int
    ops: tuple[zk.Read, ...] | tuple[zk.Write, ...] = ()
    watch: bool = False
    known: bool = True


class _Unknown(Exception):
    """A request in a form that ZooKeeper knows and kgroup does not."""


class JuteReader(codec.Reader):
    """Reads jute's values from one frame; raises only DecodeError, whatever the bytes."""

    def boolean(self) -> bool:
        return self._take(1) != b"\0"

    def buffer(self) -> bytes:
        """Return the bytes; null is empty."""
        size = self.int32()
        if size < -1:
            raise DecodeError(f"{size} bytes wanted, {self.left} left")
        return b"" if size == -1 else self._take(size)

    def text(self) -> str:
        try:
            return self.buffer().decode()
        except UnicodeDecodeError:
            raise DecodeError(f"no UTF-8, {self.left} bytes before the end") from None


def read_greeting(payload: bytes) -> Greeting:
    """Return the first frame of a connection."""
    reader = JuteReader(payload)
    reader.int32()
    reader.int64()
    timeout_ms, session = reader.int32(), reader.int64()
    reader.buffer()
    return Greeting(timeout_ms, session, reader.left > 0)


def read_request(payload: bytes) -> Request:
    """Return any other frame."""
    reader = JuteReader(payload)
    xid, kind = reader.int32(), reader.int32()
    try:
        return _read_request(reader, xid, kind)
    except _Unknown:
        return Request(xid, kind, known=False)


def _read_request(reader: JuteReader, xid: int, kind: int) -> Request:
    match kind:
        case Op.PING | Op.CLOSE:
            return Request(xid, kind)
        case Op.EXISTS:
            return Request(xid, kind, (zk.Exists(reader.text()),), reader.boolean())
        case Op.GET_DATA:
            return Request(xid, kind, (zk.Get(reader.text()),), reader.boolean())
        case Op.GET_CHILDREN | Op.GET_CHILDREN_2:
            return Request(xid, kind, (zk.Children(reader.text()),), reader.boolean())
        case Op.GET_ACL:
            return Request(xid, kind, (zk.Exists(reader.text()),))
        case Op.SYNC:
            return Request(xid, kind, (zk.Sync(reader.text()),))
        case Op.MULTI:
            return Request(xid, kind, tuple(_read_multi(reader)))
    return Request(xid, kind, (_read_write(reader, kind),))


def _read_multi(reader: JuteReader) -> list[zk.Write]:
    ops: list[zk.Write] = []
    while True:
        kind, done, _ = reader.int32(), reader.boolean(), reader.int32()
        if done:
            return ops
        ops.append(_read_write(reader, kind))


def _read_write(reader: JuteReader, kind: int) -> zk.Write:
    match kind:
        case Op.CREATE | Op.CREATE_2:
            path, data = reader.text(), reader.buffer()
            for _ in range(max(reader.int32(), 0)):
                # Every client may do everything here, whatever ACL it asked for.
                reader.int32(), reader.text(), reader.text()
            flags = reader.int32()
            if flags not in (0, 1):
                raise _Unknown
            return zk.Create(path, data, ephemeral=flags == 1)
        case Op.DELETE:
            return zk.Delete(reader.text(), reader.int32())
        case Op.SET_DATA:
            return zk.SetData(reader.text(), reader.buffer(), reader.int32())
        case Op.CHECK:
            return zk.Check(reader.text(), reader.int32())
    raise _Unknown


def greeting(answered: Greeting) -> bytes:
    """Return the answer to a greeting: the session timeout and its number; 0 if there is no session."""
    head = _INT.pack(0) + _INT.pack(answered.timeout_ms) + _LONG.pack(answered.session)
    return framed(head + _buffer(PASSWORD) + (b"\0" if answered.read_only_known else b""))


def event(path: str, change: zk.Change, zxid: int) -> bytes:
    """Return the frame that reports what a watch saw."""
    head = _HEAD.pack(WATCH_XID, zxid, Code.OK)
    return framed(head + _INT.pack(_CHANGES[change]) + _INT.pack(CONNECTED) + _text(path))


def failure(xid: int, zxid: int, code: Code) -> bytes:
    """Return an answer that is only a code: an error, or OK."""
    return framed(_HEAD.pack(xid, zxid, code))


def answer(
    request: Request, zxid: int, results: Sequence[zk.Result], size: int = 0, children: int = 0
) -> bytes:
    """Return the answer to a read or a write; `size` and `children` are for a node's stat."""
    if request.type == Op.MULTI:
        head = _HEAD.pack(request.xid, zxid, Code.OK)
        return framed(head + _multi(request.ops, results) + _MULTI.pack(-1, True, -1))
    (result,) = results
    if isinstance(result, zk.Failure):
        return failure(request.xid, zxid, Code[result.name])
    op = request.ops[0]
    match result:
        case zk.Stat() if request.type == Op.GET_ACL:
            body = _EVERYBODY + _stat(result, size, children)
        case zk.Stat():
            body = _stat(result, size, children)
        case zk.Node(data, stat):
            body = _buffer(data) + _stat(stat, len(data), children)
        case tuple():
            body = _INT.pack(len(result)) + b"".join(map(_text, result))
            if request.type == Op.GET_CHILDREN_2:
                body += _stat(zk.Stat(0, 0, 0, 0), 0, len(result))
        case _:
            body = _text(op.path) if isinstance(op, zk.Create | zk.Sync) else b""
    return framed(_HEAD.pack(request.xid, zxid, Code.OK) + body)


def _multi(ops: Sequence[zk.Read | zk.Write], results: Sequence[zk.Result]) -> bytes:
    """Return a head and result per operation; ROLLED_BACK follows an error's head."""
    parts = []
    failed = False
    for op, result in zip(ops, results, strict=True):
        if isinstance(result, zk.Failure):
            code = Code[result.name]
            if result is zk.Failure.ROLLED_BACK and not failed:
                code = Code.OK
            failed = failed or result is not zk.Failure.ROLLED_BACK
            parts.append(_MULTI.pack(-1, False, code) + _INT.pack(code))
            continue
        match op:
            case zk.Create(path):
                parts.append(_MULTI.pack(Op.CREATE, False, 0) + _text(path))
            case zk.SetData():
                assert isinstance(result, zk.Stat)
                parts.append(_MULTI.pack(Op.SET_DATA, False, 0) + _stat(result, len(op.data), 0))
            case _:
                kind = Op.DELETE if isinstance(op, zk.Delete) else Op.CHECK
                parts.append(_MULTI.pack(kind, False, 0))
    return b"".join(parts)


_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_HEAD = struct.Struct(">iqi")
_MULTI = struct.Struct(">i?i")
_STAT = struct.Struct(">qqqqiiiqiiq")


def _stat(stat: zk.Stat, size: int, children: int) -> bytes:
    # Transaction ids and changes of children are not kept: our clients do not ask for them.
    return _STAT.pack(
        0, 0, stat.created_ms, stat.modified_ms, stat.version, 0, 0, stat.owner, size, children, 0
    )


def _buffer(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _text(text: str) -> bytes:
    return _buffer(text.encode())


def framed(payload: bytes) -> bytes:
    """Return a frame: the payload after its size."""
    return _INT.pack(len(payload)) + payload


_EVERYBODY = _INT.pack(1) + _INT.pack(31) + _text("world") + _text("anyone")
"""The rights of every node here."""
