"""Items in order → events, and the state of every group at every moment. Pure: no I/O, clock or chance.

`folding.Fold` takes items; a `step` is what one operation of a coordinator wrote; `state` is what the
records say of a group, `changes` tells the difference a step made, `commits` collapses what lies between,
`ownership` knows who should have had a partition, `explain` names causes. `events` is the vocabulary. An
event rests on records it can name; what the records leave open is said to be open.
"""
