"""Groups between the classic and the consumer protocol: what a broker will say, and doing it (KIP-848).

`evidence` reads what decides; `checks` and `downgrade` judge it as the broker's own checks do, `consequences`
tells what changes besides; `rehearse` plays it on a copy of the group's records in memory; `execute` and
`watch` do and follow it.
"""
