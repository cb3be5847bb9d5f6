"""Clients nobody here wrote: each plays the same program on Kafka 4.3.1 and on ours, with equal results."""
