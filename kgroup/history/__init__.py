"""The history of groups: turns `__consumer_offsets` into events and states, and reports what is complete.

`sources` reads bytes from files, folders or a cluster. `decode` makes `items` of them and is compiled where
there is a C compiler; `legacy` reads message formats 0 and 1. `fold` makes events of items, group by group.
`replay` does all of it, `parallel` in several processes. `raw`, `stats` and `verify` answer other questions
about the same logs.

From decoding to the fold nothing touches I/O, clock or randomness. Other packages use `replay`, `Reader`,
`Fold`, `Decoder`, the values in `items` and `events`, and what `sources` opens.

The same log gives the same events however it is cut and on however many cores; a story says where it begins
to be complete; what the records leave open is not called proven; damage affects only what it covers.
"""
