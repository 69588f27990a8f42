#!/usr/bin/env bash
# Counts what the project wants to stay small. It fails nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=$(git ls-files '*.go')
lines() { xargs -r cat | wc -l; }
words() { git ls-files "$@" | xargs -r cat | wc -w; }
row() { printf '%-44s %8s   at most %s\n' "$@"; }
row 'lines of Go without tests' "$(grep -v '_test\.go$' <<<"$go" | lines)" 30000
row 'lines of tests' "$(grep '_test\.go$' <<<"$go" | lines)" 16000
row 'packages' "$(xargs -n1 dirname <<<"$go" | sort -u | wc -l)" 40
row 'lines of Go beyond 120 characters' \
  "$(xargs cat <<<"$go" | expand -t 4 | LC_ALL=C.UTF-8 grep -cE '^.{121,}')" 0
row 'fields of method.Method' \
  "$(sed -n '/^type Method struct {/,/^}/p' policyattention/method/method.go | grep -cE '^	[A-Z]')" 8
row 'go:linkname, and unsafe' "$(xargs grep -lE '^//go:linkname|^	"unsafe"' <<<"$go" | wc -l)" 'kernels'
row 'words of documents' "$(words '*.md' ':!*MODEL*.md')" 18000
row 'words of README.md' "$(words README.md)" 800
row 'words of RESULTS.md' "$(words RESULTS.md)" 4000
row 'words of CLAIMS.md' "$(words CLAIMS.md)" 4000
for card in $(git ls-files '*MODEL*.md'); do row "words of $card" "$(words "$card")" 700; done
row 'lines of scripts/verify.py' "$(wc -l <scripts/verify.py)" 350
row 'lines of scripts/methods.py' "$(wc -l <scripts/methods.py)" 380
clone=$(mktemp -d)
trap 'rm -rf "$clone"' EXIT
git clone -q --bare --depth 1 "file://$PWD" "$clone"
row 'megabytes of a clone, --depth 1' "$(git -C "$clone" count-objects -v | awk '/size-pack/ { print int($2 * 1.024e-3) + 1 }')" 90
echo
echo 'lines of Go by folder: without tests, of tests'
for folder in $(xargs -n1 dirname <<<"$go" | cut -d/ -f1-2 | sort -u); do
  in=$(git ls-files "$folder/*.go")
  printf '%-30s %6d %6d\n' "$folder" "$(grep -v '_test\.go$' <<<"$in" | lines)" \
    "$(grep '_test\.go$' <<<"$in" | lines)"
done
