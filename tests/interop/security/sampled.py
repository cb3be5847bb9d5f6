"""Whether the tables of locks and rights are played as a whole, as `make security` does, or as a sample."""

from __future__ import annotations

import os

FULL = os.environ.get("KGROUP_SECURITY") == "full"
