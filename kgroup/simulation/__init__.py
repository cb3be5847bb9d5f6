"""Coordinators, members and the network between them in virtual time: one seed decides everything.

`world` is what a run consists of, `checks` what must hold in it, `play` what is played: random runs with
faults, and the scenarios of `kgroup simulate`. The state machines are those in production: only sockets,
disks, clock and randomness are replaced.

Other packages use `play`. The same seed gives the same run; a violation names its seed.
"""
