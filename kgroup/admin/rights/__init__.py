"""The rights that each command needs and that a principal has: `doctor --rights`.

`needs.py` is the one table of commands and rights, which docs/rights.md shows; `probes.py` asks brokers what
this principal may do, and changes nothing; `report.py` puts both together.
"""
