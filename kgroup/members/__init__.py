"""Members of groups, from the client's side: what to send, and what an answer changes; no I/O.

`classic` and `consumer` are the state machines of the two protocols; `effects` has what they ask of their
host, and the interface they share. `leading` is what a classic leader does between join and sync, `commits`
handles offsets for both, `client_assignor` is a member's half of client-side assignors. `driver` runs one
member over a transport and is the only file here that waits.

Time comes from outside, as for the coordinator: the simulator, `kgroup member` and the tests run the same
code.
"""
