"""Turns items in order into events, and the state of every group at every moment. Pure: no I/O or clock.

`folding.Fold` takes items; a `step` is what one operation of a coordinator wrote; `state` is what the records
say of a group, `changes` reports the difference a step made, `commits` collapses what lies between,
`ownership` knows who should have owned a partition, `explain` names causes. `events` is the vocabulary. An
event is based on records it can name; what the records leave open is reported as open.
"""
