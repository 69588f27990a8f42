#!/usr/bin/env bash
# Writes the lock file of each *.in beside this script: every package at one version, with
# the hashes of its files for all platforms. Run it to take newer versions, then commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work"
"$work/bin/python" -m pip install --quiet uv==0.13.9
for input in *.in; do
  "$work/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-annotate --custom-compile-command 'scripts/requirements/lock.sh' \
    --output-file "${input%.in}.txt" "$input"
done
