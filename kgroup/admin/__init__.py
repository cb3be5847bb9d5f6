"""What an operator does with a cluster, over any `Transport`: sockets or the embedded cluster.

Each operation is a function that takes a `ClusterView` (`discovery`): the transport, the time it has, the
journal, and what is cached. `read` returns models of what there is and reports what it could not see;
`diagnose` draws conclusions; `change` plans, checks that the plan still holds, keeps a journal and executes;
`migrate` moves groups between the two protocols. `models` and `refusals` serve all of them. Nothing here
prints or asks a person, and no command sends a request itself.
"""
