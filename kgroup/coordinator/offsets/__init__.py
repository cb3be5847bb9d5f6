"""Offsets of the groups: committed, pending in a transaction, fetched, deleted, expired (KIP-98, KIP-447,
KIP-496).

`OffsetStore` changes by replay alone. `accepting` holds what plain and transactional commits share; `commit`
and `transactions` what is each one's own. `expiry` ends what nobody reads any more, and with it groups that
are empty.
"""
