"""Coordinators, members and the network between them in virtual time: one seed decides everything.

`world` is what a run is made of, `checks` what must hold in it, `play` what is played: random runs with
faults, and the scenarios of `kgroup simulate`. The machines are those that serve: only sockets, disks,
clock and chance are replaced.

To be used from above: `play`. Promised: the same seed gives the same run; a violation comes with the seed.
"""
