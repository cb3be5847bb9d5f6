"""Members of groups, as clients see themselves: what to send, and what an answer changes; no I/O.

`classic` and `consumer` are the machines of the two protocols; `effects` is what either asks of its host,
and the interface they share; `leading` is what a classic leader does between join and sync, `commits` what
both do with offsets, `client_assignor` a member's half of client-side assignors. `driver` runs one member
over a transport and is the one file here that waits.

Time comes from outside, as for the coordinator: the simulator, `kgroup member` and the tests play the same
code.
"""
