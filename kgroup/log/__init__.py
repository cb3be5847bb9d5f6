"""One partition's log: record batches appended, read by offset or time, kept in Kafka's own folder layout.

`interface.Log` is what every log promises. `memory` keeps it for tests and simulations; `partition` in a
folder of segments with sparse indexes (`segment`), opened by `opening`, which tells a torn tail, cut off,
from damage with good data behind it, refused (`tail`, `damage`). `manifest` remembers what was on disk for
certain. `directory` is a data folder with one owner at a time; `compaction` is Kafka's cleaner;
`transactions` reads from headers which transactions a log holds.

Promised: what `append` returned survives what the host asked to have synced; a folder that Kafka wrote
opens, and Kafka opens ours; nothing that was readable is cut. Nothing here knows what the records mean.
"""
