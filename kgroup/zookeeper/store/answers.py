"""What kazoo answers, as the results and changes of `operations`."""

from __future__ import annotations

from typing import Any

from kgroup.zookeeper.store.operations import (
    Change,
    Children,
    Exists,
    Failure,
    Get,
    Node,
    Read,
    Result,
    SetData,
    Stat,
    Write,
)

_FAILURES = {
    "NoNodeError": Failure.NO_NODE,
    "NodeExistsError": Failure.NODE_EXISTS,
    "BadVersionError": Failure.BAD_VERSION,
    "NotEmptyError": Failure.NOT_EMPTY,
    "NoChildrenForEphemeralsError": Failure.NO_CHILDREN_FOR_EPHEMERALS,
    "NoAuthError": Failure.NO_AUTH,
    "AuthFailedError": Failure.CONNECTION_LOSS,
    "RolledBackError": Failure.ROLLED_BACK,
    "RuntimeInconsistency": Failure.ROLLED_BACK,
    "SessionExpiredError": Failure.SESSION_EXPIRED,
    "BadArgumentsError": Failure.BAD_ARGUMENTS,
    "InvalidACLError": Failure.BAD_ARGUMENTS,
    "ValueError": Failure.BAD_ARGUMENTS,
    "TypeError": Failure.BAD_ARGUMENTS,
}
_CHANGES = {
    "CREATED": Change.CREATED,
    "DELETED": Change.DELETED,
    "CHANGED": Change.DATA,
    "CHILD": Change.CHILDREN,
}


def failure_of(error: BaseException) -> Failure:
    """The failure an exception of kazoo's stands for; CONNECTION_LOSS where the outcome is unknown."""
    return _FAILURES.get(type(error).__name__, Failure.CONNECTION_LOSS)


def change_of(event: Any) -> Change:
    """What a watch saw; LOST for the event with which kazoo drops the watches of a lost connection."""
    return _CHANGES.get(str(event.type), Change.LOST)


def result_of(op: Read | Write, done: Any = None, *, value: Any = None) -> Result:
    """The result of an operation out of kazoo's answer, or out of its value in the results of a multi."""
    if done is not None:
        if done.exception is not None:
            return failure_of(done.exception)
        value = done.value
    if isinstance(value, BaseException):
        return failure_of(value)
    match op:
        case Exists():
            return Failure.NO_NODE if value is None else _stat(value)
        case Get():
            data, stat = value
            return Node(data or b"", _stat(stat))
        case Children():
            return tuple(sorted(value))
        case SetData():
            return _stat(value)
        case _:
            return None


def _stat(told: Any) -> Stat:
    return Stat(told.version, told.ephemeralOwner, told.ctime, told.mtime)
