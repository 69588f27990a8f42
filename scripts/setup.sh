#!/usr/bin/env bash
# Set-up, all of it below .local/ in the repository (and the caches of go and pip).
#
#   scripts/setup.sh [STEP...]      default: plugin python tools kernel build
#
#   plugin   the pinned PJRT CPU plugin of XLA         .local/pjrt
#   python   JupyterLab, nbclient, NumPy, Gymnasium    .local/python
#   tools    gonb, gopls, goimports, staticcheck       .local/bin
#   kernel   the Go kernel for Jupyter                 .local/jupyter
#   build    every Go package, so that first notebook cells are fast
#   bench    JAX and PyTorch to compare with           .local/bench
#
# A finished step leaves a stamp named after the hash of what it was made from, and is
# skipped until that changes. What is installed is made beside its final place and
# renamed, so an interrupted run is simply run again.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
local=$root/.local
lock=$root/scripts/requirements
cd "$root"

die() { printf 'setup: %s\n' "$@" >&2; exit 1; }
say() { printf 'setup: %s\n' "$*" >&2; }

# step NAME FILE... runs make_NAME unless it was done with these very files, this
# Go and Python, in this place (virtual environments and kernels hold absolute paths).
step() {
  local name=$1 key stamp start=$SECONDS; shift
  key=$({ echo "$root"; go version; python3 --version; declare -f "make_$name"; cat "$@"; } | sha256)
  stamp=$local/stamps/$name-$key
  [[ -e $stamp ]] && return
  say "$name ..."
  "make_$name"
  rm -f "$local/stamps/$name"-*
  touch "$stamp"
  say "$name done in $((SECONDS - start)) s"
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-16; }

check_prerequisites() {
  command -v go >/dev/null ||
    die 'Go 1.26 or newer is missing. Install it from https://go.dev/dl/, e.g.' \
        '  sudo snap install go --classic        (Ubuntu)   or   brew install go   (macOS)'
  local version major minor
  version=$(go env GOVERSION); version=${version#go}
  IFS=. read -r major minor _ <<<"$version"
  minor=${minor%%[^0-9]*}
  (( major > 1 || minor >= 26 )) ||
    die "Go $version is too old, 1.26 or newer is needed. Install it from https://go.dev/dl/, e.g." \
        '  sudo snap install go --classic        (Ubuntu)   or   brew install go   (macOS)'
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die 'Python 3.11 or newer is missing. Install it with' \
        '  sudo apt-get install python3 python3-venv   or   brew install python'
  python3 -c 'import venv, ensurepip' 2>/dev/null ||
    die 'Python 3 has no venv module. Install it with' \
        '  sudo apt-get install python3-venv'
  [[ $(go env CGO_ENABLED) = 1 ]] ||
    die 'cgo is off or no C compiler was found; XLA is called through cgo. Install one with' \
        '  sudo apt-get install build-essential   or   xcode-select --install'
}

# venv DIR REQUIREMENTS... makes a virtual environment; its stamp says whether it is
# complete, so a half-made one is thrown away first.
venv() {
  local dir=$1 file; shift
  rm -rf "$dir"
  python3 -m venv "$dir"
  for file in "$@"; do
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$file"
  done
}

make_plugin() {
  if [[ $(uname -sm) != "Linux x86_64" ]]; then
    say "the pinned PJRT plugin is for Linux on x86-64, this is $(uname -sm):" \
        "'make plugin' runs GoMLX's own installer; without it the pure-Go backend is used"
    return
  fi
  local new=$local/pjrt.new
  rm -rf "$new"
  python3 -m venv "$local/pip.new"
  "$local/pip.new/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes --no-compile --target "$new" -r "$lock/pjrt.txt"
  rm -rf "$local/pip.new"
  ln -s xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so "$new/pjrt_c_api_cpu_plugin.so"
  rm -rf "$local/pjrt"
  mv "$new" "$local/pjrt"
}

check_prerequisites
mkdir -p "$local/stamps" "$local/bin"
exec 9>"$local/setup.lock"
if command -v flock >/dev/null; then flock 9; fi   # one set-up at a time

for name in "${@:-plugin}"; do
  case $name in
    plugin) step plugin "$lock/pjrt.txt" ;;
    *) die "no step called '$name'" ;;
  esac
done
