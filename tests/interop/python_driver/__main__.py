"""`python -m tests.interop.python_driver`: JSON lines on stdin and stdout, see `tests.interop.driver`."""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from typing import Any

from .member import Member, code_of

MODULES = {"librdkafka": "librdkafka", "kafka-python": "kafka_python", "aiokafka": "aio"}


class Service:
    """The members by name, and what may be asked of them."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}

    def run(self, op: str, request: dict[str, Any]) -> Any:
        if op.startswith("admin."):
            return self._client(request).admin(op.removeprefix("admin."), request)
        if op == "start":
            self.members[request["name"]] = self._client(request).Consumer(request)
            return None
        if op == "states":
            return {name: member.state() for name, member in list(self.members.items())}
        member = self.members[request["name"]]
        if op == "state":
            return member.state()
        if op == "records":
            return list(member.read)
        if op == "heard":
            return list(member.heard)
        if op == "commit":
            return member.ask(lambda: member.commit(request["offsets"]))
        if op == "committed":
            return member.ask(lambda: member.committed(request["partitions"]))
        if op == "freeze":
            return member.ask(lambda: time.sleep(request["seconds"]))
        if op == "close":
            member.stop(request["leave"])
            del self.members[request["name"]]
            return None
        raise ValueError(f"unknown operation {op}")

    def _client(self, request: dict[str, Any]) -> Any:
        return importlib.import_module(f".{MODULES[request['client']]}", __package__)


def main() -> None:
    service, lock, out = Service(), threading.Lock(), sys.stdout
    sys.stdout = sys.stderr

    def answer(request: dict[str, Any]) -> None:
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            reply["result"] = service.run(request["op"], request)
        except Exception as failure:
            reply |= {"error": code_of(failure), "message": str(failure)}
        with lock:
            out.write(json.dumps(reply) + "\n")
            out.flush()

    for line in sys.stdin:
        threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
