#!/usr/bin/env bash
# Prints the folder of the artifacts of preset smoke, all of them, as the code makes them in
# pure Go: made once for the tests of several packages, which only copy from it. The folder is
# named after the digest of the packages that the command is linked of, so any change of the code
# makes another.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=go$(sed -n 's/^go //p' go.mod)

mkdir -p .local/smoke
exec 9>.local/smoke/lock
if command -v flock >/dev/null; then flock 9; fi   # without it the work is done twice at worst
command=./policyattention/cmd/policyattention
made=.local/smoke/$(go list -export -deps -f '{{.BuildID}}' $command | git hash-object --stdin)
if [[ ! -e $made ]]; then
  work=$(mktemp -d .local/smoke/work.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  go build -ldflags='-s -w' -o "$work/" $command >&2
  "$work/policyattention" --backend go --preset smoke --artifacts "$work/artifacts" evaluate >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
  [[ -e $made ]] || mv "$work/artifacts" "$made"
fi
touch "$made"
find .local/smoke -mindepth 1 -maxdepth 1 -type d -mtime +0 -exec rm -rf {} +   # those of days ago
echo "$PWD/$made"
