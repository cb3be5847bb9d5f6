"""For `--zookeeper`: the groups in a tree, and the session that reads them. It imports kazoo."""

from kgroup.zookeeper.groups.brokers import OldCluster as OldCluster
from kgroup.zookeeper.groups.coordinator import OWN_LISTENER as OWN_LISTENER
from kgroup.zookeeper.groups.coordinator import describe_groups as describe_groups
from kgroup.zookeeper.groups.groups import Groups as Groups
from kgroup.zookeeper.groups.records import Broker as Broker
from kgroup.zookeeper.store.names import Ensemble as Ensemble
from kgroup.zookeeper.store.names import parse_ensemble as parse_ensemble
from kgroup.zookeeper.store.session import Security as Security
from kgroup.zookeeper.store.session import Session as Session
