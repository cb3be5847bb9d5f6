"""One partition's log: record batches appended, read by offset or time, kept in Kafka's own folder layout.

`interface.Log` is the interface of every log. `memory` keeps it for tests and simulations; `partition` in a
folder of segments with sparse indexes (`segment`), opened by `opening`. That cuts off a torn tail, and
refuses damage with good data behind it (`tail`, `damage`). `manifest` records what was certainly on disk.
`directory` is a data folder with one owner at a time; `compaction` is Kafka's cleaner; `transactions` reads
from headers which transactions a log has.

Guarantees: what `append` returned survives what the host asked to have synced; a folder that Kafka wrote
opens, and Kafka opens ours; nothing that was readable is cut. Nothing here knows what the records mean.
"""
