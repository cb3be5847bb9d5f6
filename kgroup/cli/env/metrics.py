"""The metrics of the cluster a command works on, from wherever that cluster shows them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kgroup.cli.env.config import LocalTarget
from kgroup.cli.env.invocation import Env
from kgroup.domain import Document
from kgroup.errors import Unreachable
from kgroup.log.directory import owner_of

if TYPE_CHECKING:
    from kgroup.admin.admin import Admin

REMOTE = "Kafka tells its metrics over JMX only, not to its clients"
NO_ENDPOINT = "the cluster is served without --metrics"


def metrics_of(env: Env, admin: "Admin") -> tuple[list[Document] | None, str | None]:
    """Kafka's names and the numbers, or None and why there are none.

    KgroupError when the process that serves the cluster announced an endpoint that does not answer.
    """
    target = env.target()
    if not isinstance(target, LocalTarget):
        return None, REMOTE
    from kgroup.broker.embedded import EmbeddedTransport

    transport = admin.transport
    if isinstance(transport, EmbeddedTransport):
        from kgroup.broker.metrics import snapshot

        return [asdict(metric) for metric in snapshot(transport.cluster)], None

    owner = owner_of(target.directory)
    if owner is None or not owner.metrics:
        return None, NO_ENDPOINT
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(owner.metrics, timeout=env.settings().timeout_s())
    try:
        connection.request("GET", "/metrics.json")
        found: list[Document] = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError) as error:
        raise Unreachable(f"the metrics at {owner.metrics} cannot be read: {error}") from None
    finally:
        connection.close()
    return found, None


def in_words(metric: Mapping[str, Any]) -> Document:
    """A metric as a row of the table: its name with its tags behind it."""
    tags = ",".join(f"{key}={value}" for key, value in metric["tags"].items())
    return {**metric, "metric": metric["name"] + (f"{{{tags}}}" if tags else "")}
