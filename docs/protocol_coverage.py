"""Writes docs/protocol-coverage.md from what the code declares: `python docs/protocol_coverage.py`."""

from pathlib import Path

from kgroup.broker.handlers import ALL
from kgroup.protocol import registry

HERE = Path(__file__).parent
HEAD = """# Protocol coverage

`make docs` writes this page. Tests compare every message of every version with kio, byte for byte in both
directions (`tests/conformance/test_kio.py`); damaged bytes raise only `DecodeError`. The embedded cluster
serves every version of every API without a note.

| API | key | versions | flexible from | note |
|---|---|---|---|---|
"""
RECORDS = """
## Records

`__consumer_offsets`: every key type with every readable value version, written as Kafka 4.3.1 writes them.
`__share_group_state` and `__transaction_state`: every key and value. They are compared with bytes of Kafka's
own classes (`tests/conformance/test_kafka_golden.py`). Record batches are version 2, uncompressed or with
gzip, snappy, lz4 or zstd.
"""


def document() -> str:
    """The whole page."""
    served = {api.key for api in ALL}
    rows = []
    for key in (*registry.KAFKA_APIS, *registry.PRIVATE_APIS):
        request = registry.request_class(key)
        first, last = request.VERSIONS[0], request.VERSIONS[-1]
        versions = f"{first}-{last}" if last > first else f"{first}"
        flexible = request.FLEXIBLE if last >= request.FLEXIBLE else "never"
        note = "" if key in served else "client only "
        if key in registry.PRIVATE_APIS:
            note = "off by default ([experiment](client-assignors.md)) "
        rows.append(f"| {registry.name_of(key)} | {key} | {versions} | {flexible} | {note}|\n")
    return HEAD + "".join(rows) + RECORDS


if __name__ == "__main__":
    (HERE / "protocol-coverage.md").write_text(document(), encoding="utf-8")
