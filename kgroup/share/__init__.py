"""Share groups beside their coordinator: what was delivered of each partition, and to whom (KIP-932).

Two machines. The share coordinator (`coordinator`) keeps one `__share_group_state` partition: of each
partition that a share group reads, where it begins and how often each record behind that was delivered. As
the group coordinator's, its state changes by `replay` alone, and a host appends before it answers. The share
partition (`partition`) is what the leader of a topic's partition knows of it for one group: who has acquired
which records until when. It is soft: what was acknowledged, released or given up it hands to the share
coordinator before anybody is answered, and what was only acquired is available again after a restart.

Promised: a record whose acknowledgement was answered is not delivered again; every lock ends.
"""
