"""What an operator does with a cluster, over any `Transport`: sockets or the embedded cluster.

`Admin` is the entrance. `read` returns models of what there is and reports what it could not see; `diagnose`
draws conclusions; `change` plans, checks that the plan still holds, keeps a journal and executes; `migrate`
moves groups between the two protocols. `models` and `refusals` serve all of them. Nothing here prints or asks
a person, and no command reaches past `Admin`.
"""
