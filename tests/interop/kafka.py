"""A real Apache Kafka: one JVM, broker and KRaft controller together, on loopback.

By hand: `python -m tests.interop.kafka [KIND ...] [key=value ...]` serves until Ctrl-C
(KIND: SSL, SASL_PLAINTEXT, SASL_SSL).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import jvm, toolchain
from .jvm import LIGHT_JVM, java
from .server import TOOLS, Server, free_port

DEFAULTS = {
    "auto.create.topics.enable": "false",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
}
SHARED = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
}
"""Overrides for a broker of its own that hosts share groups."""
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:alice",
}
"""Overrides for a broker that allows bob only what an ACL does; who comes in by PLAINTEXT may do anything."""
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


@dataclass(frozen=True)
class TlsFiles:
    """PEM files: the authority, the broker's key with its chain, and a client's key with its chain."""

    ca: Path
    server: Path
    client: Path


class RealKafka(Server):
    """Kafka with a plaintext listener, and the listener kinds asked for on top.

    `listeners` takes any of SSL, SASL_PLAINTEXT, SASL_SSL; `address(kind)` tells where each is served.
    SASL listeners know `USERS` under PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. The certificate is for
    127.0.0.1 and localhost; client certificates are accepted, and needed with the override
    {"ssl.client.auth": "required"}.
    """

    kind = "kafka"
    ready_line = "Kafka Server started"

    def __init__(
        self,
        overrides: Mapping[str, object] | None = None,
        listeners: Sequence[str] = (),
        heap: str = "512m",
        base: Path | None = None,
    ) -> None:
        super().__init__(overrides, base)
        self.heap = heap
        self.listener_ports = {kind: free_port() for kind in listeners}
        self.controller_port = free_port()

    def address(self, kind: str = "PLAINTEXT") -> str:
        """host:port of a listener, by its security protocol."""
        return self.bootstrap if kind == "PLAINTEXT" else f"127.0.0.1:{self.listener_ports[kind]}"

    def prepare(self) -> None:
        """Write the properties and format the storage folder, with the SCRAM users."""
        self._properties_file.write_text("".join(f"{k}={v}\n" for k, v in self.properties().items()))
        scram = [
            part
            for mechanism in SASL_MECHANISMS[1:]
            for name, password in (USERS.items() if self._has("SASL") else ())
            for part in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        formatting = ("format", "-t", CLUSTER_ID, "-c", str(self._properties_file), *scram)
        if self.kafka == TOOLS:
            self.tool("kafka-storage", *formatting)
        else:  # with the features of its own release
            toolchain.run(java(jvm.TOOLS["kafka-storage"], *formatting, classpath=self._jars), self.base)

    def command(self) -> list[str]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        light = (f"-Xmx{self.heap}", *LIGHT_JVM, level)
        return java("kafka.Kafka", str(self._properties_file), jvm=light, classpath=self._jars)

    @property
    def _jars(self) -> str:
        if self.kafka == TOOLS:
            return toolchain.kafka_classpath()
        return f"{toolchain.release_jars(self.kafka)}{os.sep}*"

    def properties(self) -> dict[str, str]:
        """The broker's properties: what one node on loopback needs, the tests' defaults, the overrides."""
        kinds = {"PLAINTEXT": self.port, **self.listener_ports}
        served = ",".join(f"{kind}://127.0.0.1:{port}" for kind, port in kinds.items())
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{served},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": served,
            "listener.security.protocol.map": ",".join(f"{k}:{k}" for k in kinds) + ",CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.data_dir),
            **(self._tls_properties() if self._has("SSL") else {}),
            **(self._sasl_properties() if self._has("SASL") else {}),
            **DEFAULTS,
            **self.overrides,
        }

    @property
    def _properties_file(self) -> Path:
        return self.base / "server.properties"

    def _has(self, part: str) -> bool:
        return any(part in kind.split("_") for kind in self.listener_ports)

    @cached_property
    def tls(self) -> TlsFiles:
        """The PEM files of this broker, made on first use."""
        import trustme

        authority, folder = trustme.CA(), self.base / "tls"
        folder.mkdir(exist_ok=True)
        files = TlsFiles(folder / "ca.pem", folder / "server.pem", folder / "client.pem")
        authority.cert_pem.write_to_path(str(files.ca))
        for path, names in ((files.server, ("127.0.0.1", "localhost")), (files.client, ("client.test",))):
            path.write_bytes(_pkcs8(authority.issue_cert(*names)))
        return files

    def _tls_properties(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.tls.server),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.tls.ca),
            "ssl.client.auth": "requested",
        }

    def _sasl_properties(self) -> dict[str, str]:
        module = "org.apache.kafka.common.security"
        plain = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        properties = {"sasl.enabled.mechanisms": ",".join(SASL_MECHANISMS)}
        for kind in (kind for kind in self.listener_ports if "SASL" in kind):
            for mechanism in SASL_MECHANISMS:
                login = f"plain.PlainLoginModule required {plain}"
                if mechanism != "PLAIN":
                    login = "scram.ScramLoginModule required"
                name = f"listener.name.{kind.lower()}.{mechanism.lower()}.sasl.jaas.config"
                properties[name] = f"{module}.{login};"
        return properties


def _pkcs8(certificate) -> bytes:  # type: ignore[no-untyped-def]
    """Key and chain in one PEM, the key as PKCS#8: the only form Kafka reads (trustme writes PKCS#1)."""
    from cryptography.hazmat.primitives import serialization as pem

    key = pem.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()) + chain


def main(arguments: list[str]) -> None:
    """Serve until interrupted; for use by hand."""
    overrides = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    with RealKafka(overrides, [argument for argument in arguments if "=" not in argument]) as kafka:
        print(f"kafka pid {kafka.pid} at {kafka.bootstrap}, data in {kafka.data_dir}")
        for kind in kafka.listener_ports:
            print(f"  {kind} at {kafka.address(kind)}")
        try:
            kafka.process.wait()  # type: ignore[union-attr]
        except KeyboardInterrupt:
            print("stopping")


if __name__ == "__main__":
    main(sys.argv[1:])
