"""The history of groups: `__consumer_offsets` → events, states, and what of it is complete from where.

Bytes come in by `sources`, from files and folders or a cluster. `decode` makes `items` of them and is
compiled where there is a C compiler; `legacy` reads message formats 0 and 1. `fold` makes events of items,
group by group. `replay` does all of it, `parallel` in several processes. `raw`, `stats` and `verify` look at
the same logs with other questions.

From decoding to the fold nothing touches I/O, clock or chance. To be used from above: `replay`, `Reader`,
`Fold`, `Decoder`, the values in `items` and `events`, and what `sources` opens.

Promised: the same log tells the same story however it is cut and on however many cores; a story says where
it begins to be complete; what the records leave open is not called proven; damage costs what it covers.
"""
