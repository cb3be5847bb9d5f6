"""The state of share groups: which records of each partition were delivered, and to which members (KIP-932).

Two machines. The share coordinator (`coordinator`) keeps one `__share_group_state` partition: for each
partition that a share group reads, its start and how often each record behind that was delivered. As the
group coordinator's, its state changes by `replay` alone, and a host appends before it answers. The share
partition (`partition`) is what the leader of a topic's partition knows of it for one group: which member has
acquired which records until when. It is soft: it passes what was acknowledged, released or archived to the
share coordinator before any answer, and what was only acquired is available again after a restart.

Guarantees: a record whose acknowledgement was answered is not delivered again; every lock ends.
"""
