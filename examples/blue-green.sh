#!/usr/bin/env bash
# Start a new group where an old one is, with a way back: stop the old group's readers, then
#
#   blue-green.sh orders orders-v2 && start the new readers
#
# Keeps an export of both groups' offsets as they were before; of the new one only if it was there.
# Exit code 4: one of the groups has members.
set -euo pipefail

from=$1 to=$2 folder=${3:-.}

kgroup wait "$from" --for empty --stop-after "${WAIT:-5m}" --quiet >/dev/null
kgroup offsets export "$from" -o json >"$folder/$from.json"
found=0
kgroup offsets export "$to" -o json >"$folder/$to.json" 2>/dev/null || found=$?
case $found in
  0) ;;
  3) rm "$folder/$to.json" ;; # a new group: nothing to keep
  *) echo "blue-green: the offsets of $to cannot be kept, so nothing is changed" >&2 && exit "$found" ;;
esac
kgroup offsets clone "$from" "$to" --execute --yes
diff <(kgroup offsets export "$from" -o csv) <(kgroup offsets export "$to" -o csv)
echo "$to begins where $from ended; kgroup reset-offsets --undo LAST --execute takes it back"
