"""Groups between the classic and the consumer protocol: predict a broker's answers, and migrate (KIP-848).

`evidence` reads what decides; `checks` and `downgrade` judge it as the broker does, `consequences` reports
what else changes; `rehearse` plays it on a copy of the group's records in memory; `execute` does it and
`watch` follows it.
"""
