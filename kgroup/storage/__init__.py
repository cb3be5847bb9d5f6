"""Where files lie: on this machine, in an object store (S3, GCS, Azure) or in HDFS, named by a path or a URL.

`location` reads what a user names, `options` the values of `--storage-option`, in the words of the table
library too. `store` is what every place can do and `opening` opens one: `objects` are S3, GCS and Azure,
`hadoop` is HDFS, `folders` are local ones. `files` are objects as the readers of segments take files.

Entry points: `Location`, `StorageOptions`, `Store` and `Found`, `open_store`, `RemoteFile`.

Guarantees: a local path imports no library. Ranges are read and never whole objects, and a listing is a
stream. No call takes longer than the options' timeout. A failure is a StorageError of one sentence, its kind
decides the exit code, and no secret is in it. A written file is there whole or not at all.
"""
