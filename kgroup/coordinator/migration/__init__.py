"""Groups that change their type, and classic members inside a consumer group (KIP-848).

`consumer_members` and `classic_members` answer the requests of one protocol where the group may be of the
other kind, or mixed. `upgrade` makes a consumer group of a classic one, `downgrade` the reverse; both write
the tombstones of the old records and the new records in one batch, so that a restart finds one or the other.
`fence` removes members and downgrades when only classic ones stay. This room may use `classic` and
`consumer`; they may not use it.
"""
