"""What a run is made of: virtual time, a network, brokers with shards, processes with members, transactions.

`World` has all of it under one clock and one seed. Everything here does as it is told and judges nothing:
what must hold is `checks`, what goes wrong and what is played is `play`, and this room imports neither.
"""
