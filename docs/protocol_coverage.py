"""Writes docs/protocol-coverage.md from what the code declares: `python docs/protocol_coverage.py`."""

from pathlib import Path

from kgroup.broker.handlers import ALL
from kgroup.protocol import registry

HERE = Path(__file__).parent
HEAD = """# Protocol coverage

Written by `docs/protocol_coverage.py`; `make docs` refreshes it and a test holds it to the code.

Every message of every version is held byte for byte against kio in both
directions over generated values (`tests/conformance/test_kio.py`), and damaged bytes raise only
`DecodeError` (`tests/conformance/test_robustness.py`). *Served* means that kgroup's own broker answers it
(`tests/conformance/test_broker_answers.py`, every version); the others are spoken as a client only.

| API | key | versions | flexible from | served |
|---|---|---|---|---|
"""
RECORDS = """
## Records

`__consumer_offsets`: every key type with every readable value version, written as Kafka 4.3.1 writes them.
`__share_group_state` and `__transaction_state`: every key and value. Held to bytes of Kafka's own classes
(`tests/conformance/test_kafka_golden.py`). Record batches are version 2 with none, gzip, snappy, lz4 and zstd
(`tests/unit/protocol/batches`).
"""


def document() -> str:
    """The whole page."""
    served = {api.key for api in ALL}
    rows = []
    for key in (*registry.KAFKA_APIS, *registry.PRIVATE_APIS):
        request = registry.request_class(key)
        first, last = request.VERSIONS[0], request.VERSIONS[-1]
        versions = f"{first} to {last}" if last > first else f"{first}"
        flexible = request.FLEXIBLE if last >= request.FLEXIBLE else "never"
        note = "yes" if key in served else "no"
        if key in registry.PRIVATE_APIS:
            note = "when switched on ([experiment](client-assignors.md))"
        rows.append(f"| {registry.name_of(key)} | {key} | {versions} | {flexible} | {note} |\n")
    return HEAD + "".join(rows) + RECORDS


if __name__ == "__main__":
    (HERE / "protocol-coverage.md").write_text(document(), encoding="utf-8")
