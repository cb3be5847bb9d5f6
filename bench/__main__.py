"""Run the benchmarks: `python -m bench` for all that need no arguments, `python -m bench NAME…` for some.

Each prints ratios against a peer that ran on the same machine in turns with ours; see docs/performance.md.
"""

import importlib
import sys

BENCHES = {
    "codec": "encoding and decoding requests, beside kio and kafka-python",
    "log_batches": "a commit's way to disk, beside kafka-python's batches",
    "cli_start": "kgroup list as a process, beside kafka-consumer-groups",
    "server_cpu": "the broker's processor time per request, beside Kafka (Java, Maven) and kfake (Go)",
    "rights": "the broker's processor time per request, with 1,000 access rules and without",
    "first_record": "a test that raced its consumer, repaired: how often it fails at 0.3 of a core",
    "testing_start": "import kgroup.testing, and a cluster in process until it is ready",
    "faults": "a heartbeat through the way in that obeys a test's rules, and without it",
    "shares": "the broker's processor time per 10,000 records of a share group, beside Kafka (Java, Maven)",
    "join": "a group of 1,000 until it is stable, beside Kafka (Java, Maven) and kfake (Go)",
    "assignors": "server-side assignors; with --kafka Kafka's own",
    "legacy_failover": "what thousands of consumers that come back cost a coordinator of the ZooKeeper era",
    "large_cluster": "commands about 10,000 groups on three brokers, beside kafka-consumer-groups",
    "many_groups": "memory a group and time to load 100,000 of them, beside Kafka (Java, Maven)",
    "recorder": "kgroup record beside a Kafka with 500 groups and 2,000 offsets a second (Java, Maven)",
    "recorded_day": "what a question about a moment reads of a busy day that kgroup record stored",
    "topics": "how long a topic takes to create when there are 10,000, beside Kafka (Java, Maven)",
    "decode": "whole logs of groups, beside kafka-dump-log; needs a folder and a group",
    "skew": "the Spark pipeline over an even log, one hot partition, one large group, 100,000 groups",
    "increments": "what a run of the Spark pipeline writes after few new records, and what a question reads",
    "follow": "runs over a live topic that grows, beside a query of Structured Streaming",
    "pipeline": "the Spark pipeline by size and cores; needs a folder of segments",
    "storage": "the same segments from a disk and from S3 on loopback; needs a folder of them",
}
NEED_ARGUMENTS = {"decode", "pipeline", "storage"}


def main(arguments: list[str]) -> None:
    """Run the benchmarks named, or all; what follows one name and is none goes to that benchmark."""
    if not arguments:
        arguments = [name for name in BENCHES if name not in NEED_ARGUMENTS]
    elif arguments[0] not in BENCHES:
        print("\n".join(f"{name:12} {question}" for name, question in BENCHES.items()))
        sys.exit(arguments[0] not in ("-h", "--help"))
    while arguments:
        name, *rest = arguments
        own = rest if any(other not in BENCHES for other in rest) else []
        print(f"== {name}: {BENCHES[name]}", flush=True)
        importlib.import_module(f"bench.{name}").main(own)
        arguments = [] if own else rest


if __name__ == "__main__":
    main(sys.argv[1:])
