"""What the transaction coordinator can be told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Times in ms; the defaults are Kafka's."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    id_expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms"""
    marker_retry_ms: int = 500
    """How long to wait before markers that could not be written are tried again."""
