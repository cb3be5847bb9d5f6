"""Where the bytes of a history come from: files, folders and backups, or the live topic of a cluster.

`logs` finds partitions among files, `clusters` rejects a mixture of several clusters, `chunks` and `splits`
read files in pieces; `live` reads a topic by Fetch, `capture` records it. An unreadable partition is reported
with the reason, and the others are read.
"""
