#!/usr/bin/env bash
# The last step of a deployment: has the group settled, and is it well?
#
#   after-rollout.sh orders 12
#
# Exit code 7: not settled in time, with what blocks it; 8: settled, but something is wrong.
set -euo pipefail

group=$1 members=$2

if ! kgroup wait "$group" --for "members=$members" --stop-after "${WAIT:-2m}" --quiet >/dev/null ||
    ! kgroup wait "$group" --for stable --stop-after "${WAIT:-2m}" --quiet >/dev/null; then
    kgroup doctor "$group" || true
    exit 7
fi
kgroup doctor "$group"
