"""`python -m tests.interop.rights` plays the matrix on a real Kafka 4.3.1 and writes down what bob saw."""

from __future__ import annotations

from .on_kafka import play_on_kafka
from .recorded import RECORDED, write

if __name__ == "__main__":
    seen = play_on_kafka()
    write(seen)
    print(f"{len(seen)} rows in {RECORDED}")
