"""The history of groups: `__consumer_offsets` → events, states, and what of it is complete from where.

Bytes come in from files (`sources`, `chunks`, `splits`), from a cluster (`live`) and into files (`capture`);
`clusters` refuses a mixture of several. `scan`, `legacy`, `records` and `decode` make items of them, with
`slots` and `places` for the hot loop, and are compiled where there is a C compiler. `fold` makes events of
items, group by group, with `state`, `changes`, `commits`, `ownership` and `explain`. `replay` does all of it,
`parallel` in several processes. `raw`, `stats` and `verify` look at the same logs with other questions.

From decoding to the fold nothing touches I/O, clock or chance. To be used from above: `replay`, `Reader`,
`Fold`, `Decoder`, the values in `items` and `events`, the logs of `sources` and `live`, `splits`.

Promised: the same log tells the same story however it is cut and on however many cores; a story says where
it begins to be complete; what the records leave open is not called proven; damage costs what it covers.
"""
