"""What each command needs to be allowed, and what of it a principal is: `doctor --rights`.

`needs.py` is the one table of commands and rights, which docs/rights.md shows; `probes.py` asks brokers what
this principal may do, and changes nothing; `report.py` puts both together.
"""
