"""`python -m kgroup.broker DIR PORT`: serve a folder without the command line around it."""

import logging
import sys
from pathlib import Path

from kgroup.broker.server import serve
from kgroup.runtime.cluster import Cluster

logging.basicConfig(level=logging.INFO)
serve(Cluster(Path(sys.argv[1])), port=int(sys.argv[2]))
