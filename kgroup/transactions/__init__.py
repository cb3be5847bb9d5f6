"""The machine of transactional producers, one per `__transaction_state` partition (KIP-98, KIP-360, KIP-890).

As the group coordinator's: requests and time in, records and markers out, state by `replay` alone. It
shares nothing with groups: offsets within a transaction are `coordinator.offsets.transactions`, and
`broker.transactions` connects the two. Entry point: `coordinator`. `producers` decides the id and epoch of a
producer, `partitions` what takes part, `ending` whether and how a transaction ends; `state` is a
transactional id in its newest record, `describe` what operators see.

Guarantees: an end that was decided is carried out, after a restart too; a fenced producer ends nothing.
"""
