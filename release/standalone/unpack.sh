#!/bin/sh
# kgroup in one file: unpacks itself into the user's cache at its first start, and runs there.
set -eu
cache=${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME: kgroup unpacks itself below}/.cache}/kgroup
at=$cache/@BUILD@
if [ ! -d "$at" ]; then
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/unpacking.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  if ! tail -n +@LINES@ "$0" | tar -xzf - -C "$new"; then
    echo "error: $0 cannot be unpacked into $cache: it is incomplete, or the disk is full" >&2
    exit 1
  fi
  # Where another start was first, its folder is the same.
  mv -T "$new/kgroup" "$at" 2>/dev/null || [ -d "$at" ]
  rm -rf "$new"
fi
KGROUP_TYPED=$0 exec "$at/kgroup" "$@"
