"""A Kafka cluster for tests, in the process of the test: real clients join it; no Java, no container.

    with Cluster(topics={"orders": 6}) as kafka:
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "pay"})

`cluster` is the door, `serving` runs brokers in a thread; kgroup/pytest_plugin.py has fixtures. Promised:
`Cluster`, and what `kgroup.api` exports; the rest may change. `kgroup docs testing` shows it.
"""

from kgroup.testing.cluster import Cluster

__all__ = ["Cluster"]
