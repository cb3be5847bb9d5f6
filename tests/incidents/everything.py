"""Every family of incidents, so that all of them are entered."""

from . import offsets, protocols, rebalances, stalled, static_members, topics, transactions

__all__ = ["offsets", "protocols", "rebalances", "stalled", "static_members", "topics", "transactions"]
