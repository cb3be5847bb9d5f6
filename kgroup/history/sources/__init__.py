"""Where the bytes of a history come from: files, folders and backups, or the live topic of a cluster.

`logs` finds partitions among files, `clusters` refuses a mixture of several clusters, `chunks` and `splits`
read files in pieces; `live` reads a topic by Fetch, `capture` keeps it. What cannot be read is a failure of
its partition, with the reason, and the others are read.
"""
