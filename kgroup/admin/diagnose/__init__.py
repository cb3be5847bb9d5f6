"""A check-up of groups: facts gathered for many groups at once, and the checks that read them.

`facts` polls the cluster (settings, history, transactions, a second poll); a poll that fails is an `Unseen`,
and what it would have shown counts as neither fine nor wrong. `checks` are pure.
"""
