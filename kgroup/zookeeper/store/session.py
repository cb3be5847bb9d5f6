"""A session with a real ensemble, through kazoo: operations in the order given, each answered once.

The only module that imports kazoo. Answers and watches arrive on kazoo's threads; a machine's host passes
them to its own. Command-line tools call and wait.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.extras import require_extra
from kgroup.zookeeper.store import operations as zk
from kgroup.zookeeper.store.names import Ensemble

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.interfaces import IAsyncResult
    from kazoo.protocol.connection import ConnectionHandler
    from kazoo.protocol.states import WatchedEvent, ZnodeStat

LONGEST_SESSION_S = 10.0
ROUNDS = 3
"""How often a tool tries every server before it reports that none can be reached."""
FOREVER = -1
PARTING_S = 1.0


class State(Enum):
    """The states of a session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The connection is lost; the session may live on."""
    LOST = "lost"
    """The session is over: its ephemeral nodes are gone."""


@dataclass(frozen=True, slots=True)
class Security:
    """How to authenticate (SASL, DIGEST-MD5) and encrypt; the `ssl_*` fields name PEM files."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ssl_ca: str | None = None
    ssl_certificate: str | None = None
    ssl_key: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True


class Session:
    """One session; every call of `ask` and `ask_all` is answered or fails within `timeout_s` of creation.

    With `rounds` FOREVER and no timeout it reconnects whenever the connection is lost, as a server's own
    session does; watches lost that way arrive as LOST.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        security: Security | None = None,
        *,
        timeout_s: float | None = 30.0,
        session_s: float = LONGEST_SESSION_S,
        rounds: int = ROUNDS,
        on_state: Callable[[State], None] | None = None,
    ) -> None:
        """Send nothing before `open`; ConfigError when kazoo is not installed."""
        self.ensemble = ensemble
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if timeout_s is not None:
            # kazoo connects for as long as a session lasts: a dead server must not use up the others' time.
            session_s = max(min(session_s, timeout_s / len(ensemble.servers)), 0.5)
        self.negotiated_ms: int | None = None
        """How long the ensemble keeps a silent session; None until it has been negotiated."""
        self._on_state = on_state
        self._ended = self._not_authenticated = False
        self._reason = _Reason()
        logger = logging.Logger("kgroup.zookeeper", logging.WARNING)
        logger.addHandler(self._reason)
        self._client = _client(ensemble, security or Security(), session_s, rounds, logger)
        self._client.add_listener(self._changed)
        self._listen(self._client._connection)

    @property
    def id(self) -> int:
        """The session's number, 0 while there is none."""
        known = self._client.client_id
        return 0 if known is None or known[0] is None else int(known[0])

    def begin(self) -> None:
        """Start to connect without waiting: `on_state` reports progress."""
        self._client.start_async()

    def open(self) -> None:
        """Connect and, if configured, authenticate; Unreachable or BrokerRefused say why that failed."""
        connected = self._client.start_async()
        while not connected.wait(min(self._left(), 0.05)):
            if self._ended or not self._left():
                raise self._unreachable()
        # A server that rejects our authentication says so after the connection.
        self.ask(zk.Exists("/"))

    def submit(
        self,
        op: zk.Read | zk.Write,
        answered: Callable[[zk.Result], None],
        watch: Callable[[zk.Change], None] | None = None,
    ) -> None:
        """Send an operation after those before; `watch` receives the next change of what a read read."""
        if isinstance(op, zk.Check):
            self.submit_all((op,), lambda results: answered(results[0]))
        else:
            self._asked(op, watch).rawlink(lambda done: answered(result_of(op, done)))

    def submit_all(self, ops: Sequence[zk.Write], answered: Callable[[tuple[zk.Result, ...]], None]) -> None:
        """Send a multi: either all of it is done, or none and each operation has a failure."""
        self._multi(ops).rawlink(lambda done: answered(_results_of(ops, done)))

    def ask(self, *ops: zk.Read) -> tuple[zk.Result, ...]:
        """Return the answers to reads, sent in order; reads that a lost connection left open are sent again.

        Unreachable when they are not all answered in time, BrokerRefused when authentication failed.
        """
        answers: dict[int, zk.Result] = {}
        pending = dict(enumerate(ops))
        while pending:
            asked = {number: (op, self._asked(op, None)) for number, op in pending.items()}
            for number, (op, answer) in asked.items():
                answer.wait(self._left_or_none())
                answers[number] = result_of(op, answer) if answer.ready() else zk.Failure.CONNECTION_LOSS
                if answer.ready() and type(answer.exception).__name__ in _REFUSALS:
                    self._ended = self._not_authenticated = True
            pending = {n: op for n, op in pending.items() if answers[n] in _UNANSWERED}
            if pending:
                if self._ended or not self._left():
                    raise self._unreachable()
                time.sleep(min(self._left(), 0.1))
        return tuple(answers[number] for number in range(len(ops)))

    def ask_all(self, *ops: zk.Write) -> tuple[zk.Result, ...]:
        """Return the answers to a multi, sent once: after CONNECTION_LOSS its outcome is unknown."""
        answer = self._multi(ops)
        answer.wait(self._left_or_none())
        if not answer.ready():
            return (zk.Failure.CONNECTION_LOSS,) * len(ops)
        return _results_of(ops, answer)

    def close(self) -> None:
        """End the session, its ephemeral nodes with it; do not wait for servers that do not answer."""

        def end() -> None:
            with contextlib.suppress(Exception):
                self._client.stop()
                self._client.close()

        # Stopping waits for an attempt to connect, which no deadline ends.
        parting = threading.Thread(target=end, daemon=True)
        parting.start()
        parting.join(PARTING_S)

    def __enter__(self) -> Session:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _changed(self, state: str) -> None:
        if str(self._client.client_state) == "AUTH_FAILED":
            self._ended = self._not_authenticated = True
        if self._on_state is not None:
            self._on_state(State(state.lower()))

    def _listen(self, connection: ConnectionHandler) -> None:
        """Learn when kazoo gives up, and the session timeout: it calls no listener for either."""
        zk_loop, invoke = connection.zk_loop, connection._invoke

        def loop() -> None:
            try:
                zk_loop()
            finally:
                self._ended = True

        def invoked(timeout: float, request: object, xid: int | None = None) -> object:
            answer = invoke(timeout, request, xid)
            if type(request).__name__ == "Connect":
                self.negotiated_ms = answer[0].time_out
            return answer

        connection.zk_loop, connection._invoke = loop, invoked

    def _asked(
        self, op: zk.Read | zk.Create | zk.SetData | zk.Delete, watch: Callable[[zk.Change], None] | None
    ) -> IAsyncResult:
        client = self._client
        heard = None if watch is None else (lambda event: watch(change_of(event)))
        match op:
            case zk.Exists(path):
                return client.exists_async(path, watch=heard)
            case zk.Get(path):
                return client.get_async(path, watch=heard)
            case zk.Children(path):
                return client.get_children_async(path, watch=heard)
            case zk.Sync(path):
                return client.sync_async(path)
            case zk.Create(path, data, ephemeral):
                return client.create_async(path, data, ephemeral=ephemeral)
            case zk.SetData(path, data, version):
                return client.set_async(path, data, version)
            case zk.Delete(path, version):
                return client.delete_async(path, version)

    def _multi(self, ops: Sequence[zk.Write]) -> IAsyncResult:
        transaction = self._client.transaction()
        for op in ops:
            match op:
                case zk.Create(path, data, ephemeral):
                    transaction.create(path, data, ephemeral=ephemeral)
                case zk.SetData(path, data, version):
                    transaction.set_data(path, data, version)
                case zk.Delete(path, version):
                    transaction.delete(path, version)
                case zk.Check(path, version):
                    transaction.check(path, version)
        return transaction.commit_async()

    def _left(self) -> float:
        left = self._left_or_none()
        return float("inf") if left is None else left

    def _left_or_none(self) -> float | None:
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    def _unreachable(self) -> Unreachable | BrokerRefused:
        if self._not_authenticated:
            return BrokerRefused(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                f"ZooKeeper at {self.ensemble} did not authenticate us"
                + (f": {self._reason.last}" if self._reason.last else ""),
                hint="check zookeeper.sasl.username and zookeeper.sasl.password",
            )
        why = self._reason.last or "no answer in time"
        return Unreachable(
            f"ZooKeeper at {self.ensemble} cannot be reached: {why}",
            "does an ensemble listen there? a TLS port wants -X zookeeper.ssl.client.enable=true",
        )


_UNANSWERED = (zk.Failure.CONNECTION_LOSS, zk.Failure.SESSION_EXPIRED)


def _results_of(ops: Sequence[zk.Write], done: IAsyncResult) -> tuple[zk.Result, ...]:
    """Return one result per operation: kazoo returns a multi's errors as values in its list."""
    if done.exception is not None:
        return (failure_of(done.exception),) * len(ops)
    return tuple(result_of(op, value=value) for op, value in zip(ops, done.value, strict=True))


_REFUSALS = ("AuthFailedError", "SessionClosedRequireSaslError")
_NOISE = re.compile(r"socket connection error: |\[Errno -?\d+\] ")


class _Reason(logging.Handler):
    """Keeps the newest reason in kazoo's log: kazoo reports nowhere else why it cannot connect."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info and record.exc_info[1]
        if error:
            self.last = f"{type(error).__name__}: {error}"
        elif isinstance(record.args, tuple) and record.args:  # Lines without a value hold no reason.
            self.last = _NOISE.sub("", str(record.args[0]) if len(record.args) == 1 else record.getMessage())


def _client(
    ensemble: Ensemble, security: Security, session_s: float, rounds: int, logger: logging.Logger
) -> KazooClient:
    require_extra("zookeeper", "reading groups in ZooKeeper", "kazoo")
    from kazoo.client import KazooClient
    from kazoo.handlers.threading import SequentialThreadingHandler
    from kazoo.retry import KazooRetry

    handler = SequentialThreadingHandler()
    sasl = {"mechanism": "DIGEST-MD5", "username": security.username, "password": security.password}
    return KazooClient(
        hosts=str(ensemble),
        timeout=session_s,
        handler=handler,
        logger=logger,
        connection_retry=KazooRetry(
            max_tries=rounds, delay=0.1, max_delay=1.0, sleep_func=handler.sleep_func
        ),
        sasl_options=sasl if security.username is not None else None,
        use_ssl=security.tls,
        ca=security.ssl_ca,
        certfile=security.ssl_certificate,
        # kazoo takes a certificate only together with a key, which may be in the same file.
        keyfile=security.ssl_key or security.ssl_certificate,
        keyfile_password=security.ssl_key_password,
        check_hostname=security.check_hostname,
    )


_FAILURES = {
    "NoNodeError": zk.Failure.NO_NODE,
    "NodeExistsError": zk.Failure.NODE_EXISTS,
    "BadVersionError": zk.Failure.BAD_VERSION,
    "NotEmptyError": zk.Failure.NOT_EMPTY,
    "NoChildrenForEphemeralsError": zk.Failure.NO_CHILDREN_FOR_EPHEMERALS,
    "NoAuthError": zk.Failure.NO_AUTH,
    "AuthFailedError": zk.Failure.CONNECTION_LOSS,
    "RolledBackError": zk.Failure.ROLLED_BACK,
    "RuntimeInconsistency": zk.Failure.ROLLED_BACK,
    "SessionExpiredError": zk.Failure.SESSION_EXPIRED,
    "BadArgumentsError": zk.Failure.BAD_ARGUMENTS,
    "InvalidACLError": zk.Failure.BAD_ARGUMENTS,
    "ValueError": zk.Failure.BAD_ARGUMENTS,
    "TypeError": zk.Failure.BAD_ARGUMENTS,
}
_CHANGES = {
    "CREATED": zk.Change.CREATED,
    "DELETED": zk.Change.DELETED,
    "CHANGED": zk.Change.DATA,
    "CHILD": zk.Change.CHILDREN,
}


def failure_of(error: BaseException) -> zk.Failure:
    """Return the failure that kazoo's exception stands for; CONNECTION_LOSS if the outcome is unknown."""
    return _FAILURES.get(type(error).__name__, zk.Failure.CONNECTION_LOSS)


def change_of(event: WatchedEvent) -> zk.Change:
    """Return what a watch saw; LOST for the event kazoo sends for watches of a lost connection."""
    return _CHANGES.get(str(event.type), zk.Change.LOST)


def result_of(op: zk.Read | zk.Write, done: Any = None, *, value: Any = None) -> zk.Result:
    """Return an operation's result from kazoo's answer, or from its value in a multi's results."""
    if done is not None:
        if done.exception is not None:
            return failure_of(done.exception)
        value = done.value
    if isinstance(value, BaseException):
        return failure_of(value)
    match op:
        case zk.Exists():
            return zk.Failure.NO_NODE if value is None else _stat(value)
        case zk.Get():
            data, stat = value
            return zk.Node(data or b"", _stat(stat))
        case zk.Children():
            return tuple(sorted(value))
        case zk.SetData():
            return _stat(value)
        case _:
            return None


def _stat(stat: ZnodeStat) -> zk.Stat:
    return zk.Stat(stat.version, stat.ephemeralOwner, stat.ctime, stat.mtime)
