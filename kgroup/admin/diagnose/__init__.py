"""A check-up of groups: facts gathered for many groups at once, and the checks that read them.

`facts` takes looks (settings, history, transactions, a second look); one that fails is an `Unseen`, and what
it would have shown is neither fine nor wrong. `checks` are pure.
"""
