"""A TCP proxy whose connections can be broken. Brokers name their own port; it puts its own in that place."""

from __future__ import annotations

import contextlib
import socket
import threading

HOST = b"127.0.0.1"
CHUNK = 1 << 16


class Proxy:
    """Forwards 127.0.0.1:`port` to the broker's port, until `close`."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._theirs = HOST + broker_port.to_bytes(4)
        self._ours = HOST + self.port.to_bytes(4)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def break_all(self) -> int:
        """Reset every connection; how many there were."""
        with self._lock:
            broken, self._open = self._open, set()
        for end in broken:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        return len(broken) // 2

    def close(self) -> None:
        """Accept no more, and break what is open."""
        self._listener.close()
        self.break_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self._broker_port), timeout=5)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            with self._lock:
                self._open |= {client, broker}
            threading.Thread(target=self._pump, args=(client, broker, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(broker, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                sink.sendall(data.replace(self._theirs, self._ours) if answers else data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open.discard(source)
        source.close()
