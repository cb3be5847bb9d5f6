"""For `explain`: the findings about groups in ZooKeeper."""

from kgroup.zookeeper.groups.findings import CODES as CODES
