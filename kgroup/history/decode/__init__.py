"""Turns the bytes of a log into items for a fold: loops that mypyc compiles where there is a C compiler.

`scan` finds batches, whatever the state of the bytes; `records` reads their content; `slots` gathers commits
by partition and `places` notes their positions; `decoder` does it all. The same source runs uncompiled
(decision 0066), and a test holds both equal: nothing here uses what mypyc does not support.
"""
