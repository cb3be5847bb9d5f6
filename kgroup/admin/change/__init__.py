"""Changes of a cluster: planned from what exists, journalled first, executed, reported item by item.

A plan that no longer holds is refused. `journal.change` brackets every change: however it ends, its entry
reports the outcome and what existed before. An item without an answer is reported as in doubt.
"""
