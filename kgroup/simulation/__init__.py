"""Coordinators, members and the network between them in virtual time: one seed decides everything."""
