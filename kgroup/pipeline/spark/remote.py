"""A session on a Spark Connect server: another machine's Spark answers, and no Java is needed here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4
from warnings import catch_warnings, filterwarnings

from kgroup.errors import ConfigError, KgroupError, Unreachable
from kgroup.extras import extra_hint
from kgroup.pipeline.spark.session import check_installed, first_line, is_spark

if TYPE_CHECKING:
    from grpc import RpcError
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder

ANSWER_S = 20.0
_EXTRA = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}
# Makes pyspark.sql.functions create this kind of columns.
_MODE = "SPARK_CONNECT_MODE_ENABLED"
_SESSION = {"spark.sql.session.timeZone": "UTC"}


class ConnectDenied(KgroupError):
    """The Spark Connect server rejected our credentials."""


@contextmanager
def remote_session(url: str, answer_s: float = ANSWER_S) -> Iterator[SparkSession]:
    """Yield a session of the Spark Connect server at `url` (sc://HOST:PORT); the server keeps running.

    The server reads the tables' files. ConfigError without the extra, for an invalid URL, for anything but a
    Spark Connect server, and for an incompatible version; Unreachable if nothing answers within `answer_s`;
    ConnectDenied; KgroupError if a query fails.
    """
    check_installed()
    missing = [package for name, package in _EXTRA.items() if not _is_there(name)]
    if missing:
        raise ConfigError(f"--remote needs {', '.join(missing)}", extra_hint("connect"))
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        builder = DefaultChannelBuilder(url)
    except (PySparkException, ValueError):
        text = f"{_shown(url)} is not the address of a Spark Connect server"
        raise ConfigError(text, "as in sc://host:15002, or sc://host:15002/;use_ssl=true") from None
    _check_version(_version_of(builder, url, answer_s), url)
    before, session = os.environ.get(_MODE), None
    os.environ[_MODE] = "1"
    try:
        session = _opened(builder)
        with catch_warnings():
            # Exhausted retries are an error too, and are reported as one.
            filterwarnings("ignore", message=".*RETRIES_EXCEEDED", category=UserWarning)
            yield session
    except Exception as error:
        if not is_spark(error):
            raise
        if _is_away(error):
            raise Unreachable(f"the Spark Connect server at {_shown(url)} has gone away", _HINT) from error
        raise KgroupError(f"Spark at {_shown(url)}: {first_line(error)}") from error
    finally:
        with suppress(Exception):
            if session is not None:
                session.stop()
        if before is None:
            del os.environ[_MODE]


_HINT = "is it up, and is this its gRPC port (15002 unless it is set)?"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _shown(url: str) -> str:
    """Return only the address: what follows it may hold a token."""
    return url.partition(";")[0].rstrip("/")


def _version_of(builder: DefaultChannelBuilder, url: str, answer_s: float) -> str:
    """Return the server's Spark version, asked once: Spark's own client would retry for ten minutes."""
    import grpc
    from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

    session, user = str(uuid4()), base_pb2.UserContext(user_id=builder.userId or "")
    ask = base_pb2.AnalyzePlanRequest(
        session_id=session, user_context=user, spark_version=base_pb2.AnalyzePlanRequest.SparkVersion()
    )
    end = base_pb2.ReleaseSessionRequest(session_id=session, user_context=user)
    with builder.toChannel() as channel:
        make: Any = base_pb2_grpc.SparkConnectServiceStub
        stub = make(channel)
        try:
            answer = stub.AnalyzePlan(ask, timeout=answer_s, metadata=builder.metadata())
        except grpc.RpcError as error:
            raise _refusal(error, url, answer_s) from None
        with suppress(grpc.RpcError):
            stub.ReleaseSession(end, timeout=answer_s, metadata=builder.metadata())
    return str(answer.spark_version.version)


def _refusal(error: RpcError, url: str, answer_s: float) -> KgroupError:
    from grpc import StatusCode

    where, code = _shown(url), error.code()
    if code == StatusCode.UNAVAILABLE:
        return Unreachable(f"no Spark Connect server answers at {where}: {_reason(error)}", _HINT)
    if code == StatusCode.DEADLINE_EXCEEDED:
        return Unreachable(f"nothing at {where} has answered within {answer_s:g} s", _HINT)
    if code in (StatusCode.UNAUTHENTICATED, StatusCode.PERMISSION_DENIED):
        hint = "SPARK_CONNECT_AUTHENTICATE_TOKEN has the token of a server that wants one"
        return ConnectDenied(f"the Spark Connect server at {where} did not let us in: {_reason(error)}", hint)
    return ConfigError(f"what answers at {where} is not a Spark Connect server: {_reason(error)}", _HINT)


def _reason(error: RpcError) -> str:
    details = str(error.details() or "").splitlines()
    return details[0] if details else str(error.code().name).lower()


def _check_version(version: str, url: str) -> None:
    """Raise ConfigError for a server that is older than our client, or of another major version.

    Spark keeps newer servers open to older clients of their major version, but not the reverse.
    """
    import pyspark

    ours = _numbers(pyspark.__version__)
    theirs = _numbers(version)
    if theirs[:1] != ours[:1] or theirs < ours:
        raise ConfigError(
            f"the Spark Connect server at {_shown(url)} is Spark {version or 'of no version'}, "
            f"and this client is of {pyspark.__version__}",
            f"it takes a server of {ours[0]}.{ours[1]} or newer, before {ours[0] + 1}.0",
        )


def _numbers(version: str) -> tuple[int, ...]:
    """Return major and minor version; () for anything else."""
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


def _opened(builder: DefaultChannelBuilder) -> SparkSession:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session: Any = ConnectSession.builder.channelBuilder(builder).create()
    # Spark's own waits for ten minutes; during an incident it must be known sooner that the server is gone.
    session.client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=5_000)])
    for name, value in _SESSION.items():
        session.conf.set(name, value)
    return cast("SparkSession", session)


def _is_away(error: Exception) -> bool:
    """Return whether the answer did not arrive, rather than was an error."""
    seen: BaseException | None = error
    while seen is not None:
        code = getattr(seen, "code", None)
        if callable(code) and getattr(code(), "name", "") == "UNAVAILABLE":
            return True
        seen = seen.__cause__ or seen.__context__
    return type(error).__name__ == "RetriesExceeded"
