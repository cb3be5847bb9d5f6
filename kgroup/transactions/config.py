"""The settings of the transaction coordinator."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Times in ms; the defaults are Kafka's."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    id_expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms"""
    marker_retry_ms: int = 500
    """How long to wait before unwritten markers are retried."""
