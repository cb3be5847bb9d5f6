"""The matrix on `kgroup serve`, with a listener that asks for passwords."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..kafka import DEFAULTS, USERS
from ..kgroup_server import KgroupServer
from ..server import free_port
from .on_kafka import SETTINGS, worlds
from .rows import Row, play
from .visible import Seen

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SecuredServer(KgroupServer):
    """Our broker with the listeners that `RealKafka` has: one in the clear, one with SASL/PLAIN."""

    def __init__(self, base: Path | None = None) -> None:
        super().__init__(base=base)
        self.sasl_port = free_port()

    def address(self, kind: str = "PLAINTEXT") -> str:
        """host:port of a listener, by its security protocol."""
        return self.bootstrap if kind == "PLAINTEXT" else f"127.0.0.1:{self.sasl_port}"

    def prepare(self) -> None:
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        settings = {
            **{key: DEFAULTS[key] for key in DEFAULTS if key.startswith("group.")},
            **SETTINGS,
            "transaction.state.log.num.partitions": "2",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} required {users};",
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._properties.chmod(0o600)

    def command(self) -> list[str]:
        kept = super().command()[:4]
        return [*kept, "--config", str(self._properties), "--partitions", "4"]

    @property
    def _properties(self) -> Path:
        return self.base / "server.properties"


def play_on_kgroup(base: Path | None = None, chosen: Iterable[Row] | None = None) -> dict[str, Seen]:
    """What bob sees of every row, or of those chosen."""
    with SecuredServer(base) as server, worlds(server) as world:
        return play(world, chosen)
