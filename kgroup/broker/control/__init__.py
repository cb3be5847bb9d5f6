"""A hand on a cluster that runs: members frozen and expired, time moved, for tests.

`Control` has the verbs. `dispatcher` is the way in that knows whom each connection speaks for, `presence`
what it knows. Made for loopback and memory; no broker of anything else has it.
"""
