"""Changes of a cluster: planned from what is there, journalled before, executed, told item by item.

A plan that no longer holds is refused. `journal.change` is the one bracket around every change: however it
ends, its entry says so, with what was there before. What may have happened without an answer is said to be in
doubt.
"""
