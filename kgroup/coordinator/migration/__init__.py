"""Groups that change their type, and classic members inside a consumer group (KIP-848).

`consumer_members` and `classic_members` answer the two protocols' requests where the other kind of group, or
a mixed one, may be met. `upgrade` makes a consumer group of a classic one, `downgrade` the reverse; both
write the tombstones of what was and the records of what is in one batch, so that a restart finds one or the
other. `fence` takes members out and downgrades when only classic ones stay. This room may use `classic` and
`consumer`; they may not use it.
"""
