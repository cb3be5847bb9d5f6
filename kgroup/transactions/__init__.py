"""The machine of transactional producers, one a `__transaction_state` partition (KIP-98, KIP-360, KIP-890).

As the group coordinator's: requests and time in, records and markers out, state by `replay` alone. It
shares nothing with groups: offsets within a transaction are `coordinator.offsets.transactions`, and what
ties the two together is `broker.transactions`. `coordinator` is the entrance; `producers` says which id and
epoch a producer gets, `partitions` what takes part, `ending` whether and how a transaction ends; `state` is
a transactional id as its newest record has it, `describe` what operators see.

Promised: an end that was decided is carried out, after a restart too; a producer that was fenced ends
nothing.
"""
