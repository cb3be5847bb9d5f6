"""`python -m tests.outside.serving kafka|kgroup PORT [SETTING=VALUE ...]` serves until SIGTERM."""

from __future__ import annotations

import signal
import sys

from tests.interop.kafka import RealKafka
from tests.interop.kgroup_server import KgroupServer

READY = "serves"


def main(kind: str, port: str, *settings: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    overrides = dict(setting.split("=", 1) for setting in settings)
    server = {"kafka": RealKafka, "kgroup": KgroupServer}[kind](overrides)
    server.port = int(port)
    if isinstance(server, RealKafka) and "node.id" in overrides:
        node = f"{overrides['node.id']}@127.0.0.1:{server.controller_port}"
        server.overrides["controller.quorum.voters"] = node
    with server:
        print(READY, flush=True)
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
