"""The control port: HTTP on loopback, for clients that have the token."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hmac
import json
import logging
import re
import socket
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias
from urllib.parse import unquote

from kgroup.broker.control.control import Control
from kgroup.broker.control.declaring import NotThere
from kgroup.broker.control.port.openapi import document
from kgroup.broker.control.port.operations import (
    KINDS,
    NUMBER,
    OPERATIONS,
    Answer,
    Fields,
    Operation,
)
from kgroup.broker.server import Server
from kgroup.errors import ConfigError, KgroupError, TimedOut

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
LONGEST_BODY = 1 << 20
PIECE = 1 << 16
MOST_CONNECTIONS = 64
"""Served at once, each by a thread; one more is closed."""
STRANGER_S = 10.0
"""How long a connection may be silent before its first request with the token."""
STOP_S = 0.05
"""How soon the port stops when it is to."""
_NUMBER = re.compile(r"[0-9]{1,18}")
CarryOut: TypeAlias = Callable[[Operation, Fields], Answer]
Accepted: TypeAlias = socket.socket | tuple[bytes, socket.socket]
_PATHS = [
    (operation, re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", operation.path))) for operation in OPERATIONS
]


class Stopping(KgroupError):
    """The server stops before an operation is done."""


_STATUS = {NotThere: 404, ConfigError: 400, TimedOut: 408, Stopping: 503, KgroupError: 409}
"""By the first class that an error belongs to."""


class ControlPort:
    """Serves the verbs of a server from threads of its own; they are carried out on the server's loop."""

    def __init__(self, token: str, port: int, server: Server) -> None:
        self._loop = asyncio.get_running_loop()
        self._control = Control(server)
        try:
            self._http = _BoundedServer(port, token, self.carry_out)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is above 65535"
            hint = "take another with --control, or 0 for any free one"
            raise KgroupError(f"control port {port} on {HOST} cannot be used: {why}", hint) from None
        self._under_way: set[concurrent.futures.Future[Answer]] = set()
        self.url = f"http://{HOST}:{self._http.server_port}"
        serve = partial(self._http.serve_forever, poll_interval=STOP_S)
        self._thread = threading.Thread(target=serve, name="control", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop listening; end waits under way."""
        await asyncio.to_thread(self._http.shutdown)
        self._thread.join()
        self._http.server_close()
        for task in tuple(self._under_way):
            task.cancel()

    def carry_out(self, operation: Operation, given: Fields) -> Answer:
        """Return what an operation returns, for any thread except the loop's own."""
        done = asyncio.run_coroutine_threadsafe(operation.run(self._control, given), self._loop)
        self._under_way.add(done)
        try:
            return done.result()
        except concurrent.futures.CancelledError:
            raise Stopping("the server stops") from None
        finally:
            self._under_way.discard(done)


class _BoundedServer(ThreadingHTTPServer):
    """Closes a connection at once where there are MOST_CONNECTIONS."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, port: int, token: str, carry_out: CarryOut) -> None:
        self.authorization = f"Bearer {token}".encode()
        self.carry_out = carry_out
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((HOST, port), _Handler)

    def process_request(self, request: Accepted, client_address: object) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Accepted, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Do not report clients that are gone."""


class _Handler(BaseHTTPRequestHandler):
    """One connection; no body is read before the token is known."""

    protocol_version = "HTTP/1.1"
    timeout = STRANGER_S  # the base class sets it on the connection
    server: _BoundedServer

    def handle_any(self) -> None:
        status, answer = self._answered()
        content = json.dumps(answer).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = handle_any

    def _answered(self) -> tuple[int, Answer]:
        text = self.headers.get("Content-Length", "0")
        size = int(text) if _NUMBER.fullmatch(text) else LONGEST_BODY + 1
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), self.server.authorization):
            self._discard(size)
            return 401, _error(
                "the token is missing or wrong", "Authorization: Bearer, with the ready file's token"
            )
        if size > LONGEST_BODY or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            what = "a body without its length" if size <= LONGEST_BODY else f"a body of {text:.20} bytes"
            return 413, _error(what, f"at most {LONGEST_BODY} are read; Content-Length has the number")
        self.connection.settimeout(None)
        body = self.rfile.read(size)
        path = self.path.partition("?")[0]
        if (self.command, path) == ("GET", "/openapi.json"):
            return 200, document()
        try:
            return 200, self.server.carry_out(*_asked(self.command, path, body))
        except KgroupError as error:
            status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
            usage = {"usage": True} if status == 400 else {}
            return status, {**_error(error.message, error.hint), **usage}
        except Exception:
            log.exception("%s %s failed", self.command, path)
            return 500, _error("the server failed", "its log says how")

    def _discard(self, size: int) -> None:
        """End the connection with this answer; what was sent is read, or the answer might not arrive."""
        self.close_connection = True
        left = size if size <= LONGEST_BODY else 0
        while left > 0 and (piece := self.rfile.read1(min(left, PIECE))):
            left -= len(piece)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log the requests of a test."""


def _asked(method: str, path: str, body: bytes) -> tuple[Operation, Fields]:
    """Return the requested operation and its fields; ConfigError gives the valid values."""
    there = [(operation, match) for operation, pattern in _PATHS if (match := pattern.fullmatch(path))]
    if not there:
        paths = ", ".join(dict.fromkeys(operation.path for operation in OPERATIONS))
        raise NotThere("path", f"there is nothing at {path}", f"there are {paths}, /openapi.json")
    for operation, match in there:
        if operation.method != method:
            continue
        parts: dict[str, object] = {}
        for name, text in match.groupdict().items():
            if operation.fields[name].kind != NUMBER:
                parts[name] = unquote(text)
            elif _NUMBER.fullmatch(text):
                parts[name] = int(text)
            else:
                raise ConfigError(f"{name} is {text[:20]!r} in the path", "it is a number")
        return operation, {**_read(operation, body, parts), **parts}
    methods = ", ".join(operation.method for operation, _ in there)
    raise NotThere("path", f"{method} of {path} does nothing", f"it has {methods}")


def _read(operation: Operation, body: bytes, parts: Fields) -> Fields:
    try:
        given = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the body is not JSON: {error}", "send an object") from None
    if not isinstance(given, dict):
        raise ConfigError("the body is not an object", 'as {"by": "45s"}')
    known = {name: field for name, field in operation.fields.items() if name not in parts}
    for name, value in given.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise ConfigError(
                f"{operation.method} {operation.path} has no field {name!r}", f"its fields: {names}"
            )
        kind = KINDS[known[name].kind]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"{name} is {json.dumps(value)}", f"it is of type {known[name].kind}")
    for name, field in known.items():
        if field.needed and name not in given:
            raise ConfigError(f"{name} is missing", field.says)
    return {**{name: field.default for name, field in known.items()}, **given}


def _error(error: str, hint: str | None) -> Answer:
    return {"error": error} if hint is None else {"error": error, "hint": hint}
