"""What a run consists of: virtual time, a network, brokers with shards, processes with members, transactions.

`World` has all of it under one clock and one seed. Everything here obeys and checks nothing: the invariants
are in `checks`, faults and scenarios in `play`, and this package imports neither.
"""
