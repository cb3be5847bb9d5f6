"""What an operator does with a cluster, over any `Transport`: sockets or the embedded cluster, all the same.

`Admin` is the entrance. `read` gives models of what there is, with what could not be seen beside it;
`diagnose` concludes from what was read; `change` plans, checks that the plan still holds, keeps a journal,
executes; `migrate` moves groups between the two protocols. `models` and `refusals` are what all of them
speak. Nothing here prints or asks a person, and no command reaches past `Admin`.
"""
