"""A token server on loopback: real sockets, real HTTPS, answers as told; it remembers what it was asked."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs


def part(content: object) -> str:
    """A part of a JWT."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def jwt(
    sign: Callable[[bytes], bytes] | None = None, header: Mapping[str, str] | None = None, **claims: Any
) -> str:
    """A JWT of these claims; its signature is none unless `sign` makes one."""
    signed = f"{part(header or {'alg': 'none'})}.{part(claims)}"
    made = sign(signed.encode()) if sign else b"unsigned"
    return f"{signed}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


class TokenServer:
    """Issues `jwt`s to the one who knows the client's secret.

    `answers` come first, one for each request: (status, body), or None to hang up without a word.
    """

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        secret: str = "client-secret",
        issue: Callable[[], str] | None = None,
    ) -> None:
        self.secret = secret
        self.issue = issue or (lambda: jwt(sub="alice", exp=time.time() + 3600, iat=time.time()))
        self.answers: list[tuple[int, bytes] | None] = []
        self.asked: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.get: dict[str, bytes] = {}
        self._tls = tls
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._server.server_port}/token"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(300)

    def _answer(self, form: dict[str, str], headers: dict[str, str]) -> tuple[int, bytes] | None:
        self.asked.append(form)
        self.headers.append(headers)
        if self.answers:
            return self.answers.pop(0)
        basic = headers.get("Authorization", "").removeprefix("Basic ")
        known = base64.b64decode(basic).decode().partition(":")[2] == self.secret
        if not known and "client_assertion" not in form and "assertion" not in form:
            return 401, json.dumps(
                {"error": "invalid_client", "error_description": "no such client"}
            ).encode()
        return 200, json.dumps({"access_token": self.issue(), "expires_in": 3600}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                answer = owner._answer(form, dict(self.headers))
                if answer is not None:
                    self._say(*answer)

            def do_GET(self) -> None:
                found = owner.get.get(self.path)
                self._say(404 if found is None else 200, found or b"")

            def _say(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
