"""Offsets of the groups: committed, pending in a transaction, fetched, deleted, expired (KIP-98, KIP-447,
KIP-496).

`OffsetStore` changes by replay alone. `accepting` has what plain and transactional commits share; `commit`
and `transactions` have the rest. `expiry` removes offsets that are no longer read, and with them groups
that are empty.
"""
