"""kgroup: consumer groups of Kafka, on a real cluster or an embedded one.

`connect` reaches a cluster from a program, `kgroup.testing` brings one for tests; `kgroup docs testing`.
"""

from __future__ import annotations

from kgroup.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # without `typing`, which a start of the command line may do without
    from collections.abc import Mapping
    from pathlib import Path

    from kgroup.api import Kafka


def connect(
    bootstrap: str,
    properties: Mapping[str, str] | None = None,
    *,
    timeout_s: float = 30.0,
    journal: Path | None = None,
) -> Kafka:
    """Return the cluster at "HOST:PORT,…", reached with a client's `properties`; nothing is sent yet.

    `timeout_s` bounds each of its functions, retries included. What it changes is recorded in `journal`, by
    default the user's. ConfigError for an address or a property that cannot be used.
    """
    from kgroup.api import Kafka

    return Kafka(bootstrap, properties, timeout_s=timeout_s, journal=journal)
