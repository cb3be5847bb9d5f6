"""Locks: every mechanism, with and without TLS, on a real Kafka and on ours, with every client."""
