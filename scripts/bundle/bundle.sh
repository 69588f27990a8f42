#!/usr/bin/env bash
# Builds a folder that runs the experiments on another Linux machine on
# x86-64, with a GPU or without, and needs nothing there but glibc ≥ 2.34, libstdc++ and the GPU's libraries.
#
#   scripts/bundle/bundle.sh [FOLDER]      default: .local/bundle/policyattention-linux-amd64
#
# Beside it comes FOLDER.tar.gz. The plugin of XLA for the CPU is inside; the one for CUDA,
# which is several times larger, is named to run.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
folder=${1:-$root/.local/bundle/policyattention-linux-amd64}
plugin=$root/.local/pjrt/pjrt_c_api_cpu_plugin.so
[[ -e $plugin ]] || { echo "bundle.sh: $plugin is missing; 'make setup' installs it" >&2; exit 1; }
rm -rf "$folder" "$folder.tar.gz"
mkdir -p "$folder/pjrt"
# XLA is loaded while the program runs, so libc stays dynamic; nothing else does.
(cd "$root" && GOTOOLCHAIN=go$(sed -n 's/^go //p' go.mod) CGO_ENABLED=1 GOOS=linux GOARCH=amd64 GOEXPERIMENT=simd go build \
  -ldflags='-s -w -linkmode=external -extldflags=-static-libgcc' -o "$folder/" ./policyattention/cmd/policyattention)
cp -L "$plugin" "$folder/pjrt/"
cp "$here/run.sh" "$root/LICENSE" "$folder/"
tar -C "$(dirname "$folder")" -cf - "$(basename "$folder")" | gzip -1 >"$folder.tar.gz"
echo "$folder and its .tar.gz ($(du -h "$folder.tar.gz" | cut -f1)): run ./run.sh there"
