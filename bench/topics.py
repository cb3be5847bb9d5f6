"""How long does it take to create a topic, as topics grow many? Ours beside Kafka.

    python -m bench topics [topics=10000]

One client creates topics of one partition, each with a request of its own, one after the other. Milliseconds
that a request takes, for the first, the middle and the last tenth of them, and the longest of all.
"""

from __future__ import annotations

import time
from statistics import median

from bench.brokers import brokers, connected
from bench.history import keep
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from tests.interop.server import Server


def created(server: Server, topics: int) -> list[float]:
    """Milliseconds that each topic took; RuntimeError for one that was refused."""
    took = []
    with connected(server) as transport:
        for number in range(topics):
            wanted = CreatableTopic(name=f"topic-{number:06}", num_partitions=1, replication_factor=1)
            start = time.perf_counter()
            answer = transport.request(None, CreateTopicsRequest(topics=(wanted,), timeout_ms=30_000))
            took.append((time.perf_counter() - start) * 1000)
            assert isinstance(answer, CreateTopicsResponse)
            if answer.topics[0].error_code:
                raise RuntimeError(f"topic {number}: {answer.topics[0].error_message}")
    return took


def main(arguments: list[str]) -> None:
    """Print a line for each broker, and the ratio of ours to Kafka's for the last tenth."""
    options = {key: int(value) for key, value in (argument.split("=") for argument in arguments)}
    topics = options.get("topics", 10_000)
    tenth = max(topics // 10, 1)
    last = {}
    with brokers() as servers:
        print(f"{f'{topics} topics, ms each':24}{'first':>8}{'middle':>8}{'last':>8}{'longest':>9}")
        for name in [name for name in servers if name != "kfake"]:
            took = created(servers[name], topics)
            middle = (topics - tenth) // 2
            tenths = [median(took[start : start + tenth]) for start in (0, middle, topics - tenth)]
            last[name] = tenths[-1]
            said = "".join(f"{each:8.2f}" for each in tenths)
            print(f"{name:24}{said}{max(took):9.1f}", flush=True)
    if "kafka" in last:
        ratio = last["kgroup"] / last["kafka"]
        print(f"last tenth, ratio {ratio:.2f}  {keep(f'topics {topics}', ratio)}")
