"""Control of a running cluster for tests: freeze and expire members, move time.

`Control` has the verbs. `dispatcher` is the entry that knows which member each connection belongs to,
`presence` what it knows. Made for loopback and memory; no broker of anything else has it.
"""
