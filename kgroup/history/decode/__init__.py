"""The bytes of a log → items for a fold: the loops that mypyc compiles where there is a C compiler.

`scan` finds batches, whatever the state of the bytes; `records` reads what lies in them; `slots` gathers
commits by partition and `places` notes where they lie; `decoder` does it all. The same source runs plain
(decision 0066), and a test holds both equal: nothing here uses what mypyc does not know.
"""
