"""A web address on loopback that takes posts, or refuses them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Receiver:
    """Takes posts, or refuses them while `closed`; `taken` are their webhook-ids and bodies, in order."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, Any]] = []
        self.refused = 0
        self.closed = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if outer.closed:
                    outer.refused += 1
                else:
                    outer.taken.append((self.headers["webhook-id"], json.loads(body)))
                self.send_response(503 if outer.closed else 204)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def close(self) -> None:
        """Stop listening."""
        self.server.shutdown()
        self.server.server_close()
