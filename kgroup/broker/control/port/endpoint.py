"""The control port: HTTP on loopback, for clients that have the token."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias
from urllib.parse import unquote

from kgroup.broker.control.control import Control
from kgroup.broker.control.port.openapi import document
from kgroup.broker.control.port.operations import (
    KINDS,
    NUMBER,
    OPERATIONS,
    Answer,
    Fields,
    NotThere,
    Operation,
)
from kgroup.broker.server import Server
from kgroup.errors import ConfigError, KgroupError, TimedOut

HOST = "127.0.0.1"
LONGEST_BODY = 1 << 20
CarryOut: TypeAlias = Callable[[Operation, Fields], Answer]
_STATUS = {NotThere: 404, ConfigError: 400, TimedOut: 408, KgroupError: 409}
"""By the first class that an error belongs to."""
_PATHS = [(each, re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", each.path))) for each in OPERATIONS]


class ControlPort:
    """Serves the verbs of a server from threads of its own; they are carried out on the server's loop."""

    def __init__(self, token: str, port: int, server: Server) -> None:
        self._loop = asyncio.get_running_loop()
        self._control = Control(server)
        try:
            self._http = ThreadingHTTPServer((HOST, port), _handler(token, self.carry_out))
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is above 65535"
            hint = "take another with --control, or 0 for any free one"
            raise KgroupError(f"control port {port} on {HOST} cannot be used: {why}", hint) from None
        self._http.daemon_threads = True
        self.url = f"http://{HOST}:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, name="control", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop listening; end waits under way."""
        await asyncio.to_thread(self._http.shutdown)
        self._thread.join()
        self._http.server_close()

    def carry_out(self, operation: Operation, given: Fields) -> Answer:
        """Return what an operation returns, for any thread except the loop's own."""
        return asyncio.run_coroutine_threadsafe(operation.run(self._control, given), self._loop).result()


def _handler(token: str, carry_out: CarryOut) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            status, answer = self.answered()
            content = json.dumps(answer).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if status == 401:
                self.send_header("WWW-Authenticate", "Bearer")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = handle_any

        def answered(self) -> tuple[int, Answer]:
            size = self.headers.get("Content-Length", "0")
            if not size.isdecimal() or int(size) > LONGEST_BODY:
                self.close_connection = True
                return 413, _error(f"a body of {size} bytes", f"at most {LONGEST_BODY} are read")
            body = self.rfile.read(int(size))
            given = self.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
                return 401, _error(
                    "the token is missing or wrong", "Authorization: Bearer, with the ready file's token"
                )
            path = self.path.partition("?")[0]
            if (self.command, path) == ("GET", "/openapi.json"):
                return 200, document()
            try:
                return 200, carry_out(*_asked(self.command, path, body))
            except KgroupError as error:
                status = next(code for kind, code in _STATUS.items() if isinstance(error, kind))
                usage = {"usage": True} if status == 400 else {}
                return status, {**_error(error.message, error.hint), **usage}

        def log_message(self, format: str, *args: object) -> None:
            """Do not log the requests of a test."""

    return Handler


def _asked(method: str, path: str, body: bytes) -> tuple[Operation, Fields]:
    """Return the requested operation and its fields; ConfigError gives the valid values."""
    there = [(each, found) for each, pattern in _PATHS if (found := pattern.fullmatch(path))]
    if not there:
        paths = ", ".join(dict.fromkeys(each.path for each in OPERATIONS))
        raise NotThere(f"there is nothing at {path}", f"there are {paths}, /openapi.json")
    for operation, found in there:
        if operation.method != method:
            continue
        parts: dict[str, object] = {}
        for name, text in found.groupdict().items():
            if operation.fields[name].kind != NUMBER:
                parts[name] = unquote(text)
            elif text.isdecimal():
                parts[name] = int(text)
            else:
                raise ConfigError(f"{name} is {text!r} in the path", "it is a number")
        return operation, {**_read(operation, body, parts), **parts}
    methods = ", ".join(each.method for each, _ in there)
    raise NotThere(f"{method} of {path} does nothing", f"it has {methods}")


def _read(operation: Operation, body: bytes, parts: Fields) -> Fields:
    try:
        given = json.loads(body) if body else {}
    except ValueError as error:
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
