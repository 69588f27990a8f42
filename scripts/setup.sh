#!/usr/bin/env bash
# Set-up, all of it below .local/ in the repository (and the caches of go and pip).
#
#   scripts/setup.sh [STEP...]      default: plugin python tools kernel build
#
#   plugin   the pinned PJRT CPU plugin of XLA         .local/pjrt
#   python   JupyterLab, nbclient, NumPy, Gymnasium    .local/python
#   tools    gonb, goimports, staticcheck, gopls       .local/bin, .local/gopls
#   kernel   the Go kernel for Jupyter                 .local/jupyter
#   build    every Go package, so that first notebook cells are fast
#   bench    JAX and PyTorch to compare with (6 GB)    .local/bench
#
# A finished step leaves a stamp named after the hash of what it was made from, and is
# skipped until that changes. A step without a stamp starts from nothing, so after an
# interruption set-up is simply run again. Two set-ups at once share the steps: who comes
# to a step second waits for it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
local=$root/.local
lock=$root/scripts/requirements
cd "$root"
export GOTOOLCHAIN=go$(sed -n 's/^go //p' go.mod)   # any Go from 1.21 on fetches it

die() { printf 'setup: %s\n' "$@" >&2; exit 1; }
say() { printf 'setup: %s\n' "$*" >&2; }

# step NAME FILE... runs make_NAME unless it was done with these very files, this
# Go and Python, in this place (virtual environments and kernels hold absolute paths).
step() {
  local name=$1 key stamp start=$SECONDS; shift
  key=$({ echo "$root"; go version; echo "${GOEXPERIMENT-}"; python3 --version; declare -f "make_$name"; cat "$@"; } | sha256)
  stamp=$local/stamps/$name-$key
  exec 9>"$local/stamps/$name.lock"
  if command -v flock >/dev/null; then flock 9; fi
  [[ -e $stamp ]] && return
  say "$name ..."
  "make_$name"
  rm -f "$local/stamps/$name"-*
  touch "$stamp"
  say "$name done in $((SECONDS - start)) s"
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -c1-16; }

check_prerequisites() {
  local version problem
  version=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || version=none
  [[ $version != none && ! $version =~ ^go1\.([0-9]|1[0-9]|20)([^0-9]|$) ]] ||
    die "Go 1.21 or newer is needed (it fetches $GOTOOLCHAIN); found: $version. Install it with" \
        '  sudo snap install go --classic        (Ubuntu)   or   brew install go   (macOS)'
  problem=$(go version 2>&1) || die "$version could not fetch $GOTOOLCHAIN:" "  $problem"
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

# pip_install PYTHON LOCKFILE [OPTION...] installs exactly the files that LOCKFILE names.
pip_install() {
  local python=$1 file=$2; shift 2
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes -r "$file" "$@"
}

make_plugin() {
  if [[ $(uname -sm) != "Linux x86_64" ]]; then
    say "the pinned PJRT plugin is for Linux on x86-64, this is $(uname -sm):" \
        "'make plugin' runs GoMLX's own installer; only the backends xla:… need it"
    return
  fi
  rm -rf "$local/pjrt.new" "$local/pip.new"
  python3 -m venv "$local/pip.new"
  pip_install "$local/pip.new/bin/python" "$lock/pjrt.txt" --no-compile --target "$local/pjrt.new"
  ln -s xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so "$local/pjrt.new/pjrt_c_api_cpu_plugin.so"
  rm -rf "$local/pip.new" "$local/pjrt"
  mv "$local/pjrt.new" "$local/pjrt"
}

make_python() {
  rm -rf "$local/python"
  python3 -m venv "$local/python"
  pip_install "$local/python/bin/python" "$lock/python.txt"
}

make_bench() {
  rm -rf "$local/bench"
  python3 -m venv "$local/bench"
  pip_install "$local/bench/bin/python" "$lock/bench.txt"
  # Told this, PyTorch's MKL uses AVX-512 on AMD's processors too.
  if [[ $(uname -sm) = "Linux x86_64" ]]; then
    ${CC:-cc} -shared -fPIC -x c -o "$local/bench/lib/mkl_as_on_intel.so" - <<<'int mkl_serv_intel_cpu_true(void) { return 1; }'
  fi
}

# gonb is built from its sources with the patches of scripts/tools, which say why.
make_tools() {
  local sources
  (cd scripts/tools && go mod download github.com/janpfeifer/gonb)
  sources=$(cd scripts/tools && go list -m -f '{{.Dir}}' github.com/janpfeifer/gonb)
  rm -rf "$local/gonb" && cp -r "$sources" "$local/gonb" && chmod -R u+w "$local/gonb"
  (cd "$local/gonb" && GIT_CEILING_DIRECTORIES=$local git apply "$root"/scripts/tools/gonb-*.patch) ||
    die 'the patches of scripts/tools could not be applied; they need git'
  cp scripts/tools/go.mod "$local/tools.mod"
  cp scripts/tools/go.sum "$local/tools.sum"
  go mod edit -replace "github.com/janpfeifer/gonb=$local/gonb" "$local/tools.mod"
  (cd scripts/tools && GOBIN=$local/bin go install -modfile="$local/tools.mod" tool)
  mkdir -p "$local/gopls" && mv "$local/bin/gopls" "$local/gopls/"   # see scripts/kernel.sh
}

# The kernel sees this repository, as it is now, beside each notebook's own module.
make_kernel() {
  PATH=$local/gopls:$local/bin:$PATH JUPYTER_DATA_DIR=$local/jupyter \
    gonb --install -raw_error -go_work="$root" 2>/dev/null ||
    die "gonb could not install its kernel into $local/jupyter"
  python3 - "$local" "${GOEXPERIMENT-}" "$GOTOOLCHAIN" <<'PYTHON'
import json, pathlib, sys
local = pathlib.Path(sys.argv[1])
path = local / "jupyter/kernels/gonb/kernel.json"
spec = json.loads(path.read_text())
spec["argv"].insert(0, f"{local.parent}/scripts/kernel.sh")
spec["env"] |= {
    "PATH": f"{local}/gopls:{local}/bin:${{PATH}}",  # Jupyter fills in PATH as it is when a kernel starts
    "GOPROXY": "off",                  # a cell never fetches a module
    "GOTOOLCHAIN": sys.argv[3],
    "GOFLAGS": "'-ldflags=-s -w'",     # half the time to link a cell
    "GOWORK": "",
    "PJRT_PLUGIN_LIBRARY_PATH": f"{local}/pjrt:{local}/go-xla:{local}/go-xla/nvidia",
    "GOMLX_NO_AUTO_INSTALL": "1",
    "GOEXPERIMENT": sys.argv[2],       # as everything else is built
}
path.write_text(json.dumps(spec, indent=1) + "\n")

# JupyterLab neither asks about news nor looks for updates unless its user says so, starts
# the notebook's own kernel without a question, and waits for completions as long as the
# first one in a kernel may take.
overrides = local / "python/share/jupyter/lab/settings/overrides.json"
overrides.parent.mkdir(parents=True, exist_ok=True)
overrides.write_text(json.dumps({
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"autoStartDefaultKernel": True},
    "@jupyterlab/completer-extension:manager": {"providerTimeout": 10_000},  # ms
}) + "\n")
PYTHON
}

# Notebook cells are built in a workspace, offline: that needs the go.mod file of every
# module that any requirement names, where a build here is content with fewer.
make_build() {
  go list -export ./... >/dev/null   # builds packages, as 'go build' does, and links no command
  rm -rf "$local/workspace"
  mkdir "$local/workspace"
  (cd "$local/workspace" && go mod init cell && go work init . "$root" && go list -m all) >"$local/workspace/log" 2>&1 ||
    { tail -n 3 "$local/workspace/log" >&2; die 'the module graph could not be loaded'; }
  rm -rf "$local/workspace"
  # gopls keeps what it learns about packages in a cache of its own.
  "$local/gopls/gopls" check policyattention/nb/nb.go >/dev/null 2>&1 || say "gopls could not read the packages; completions will be slow at first"
}

check_prerequisites
# As in the Makefile: the vector kernels of GoMLX's pure-Go backend.
[[ $(go env GOARCH) = amd64 ]] && export GOEXPERIMENT=${GOEXPERIMENT-simd}
mkdir -p "$local/stamps" "$local/bin"

do_step() {
  case $1 in
    plugin) step plugin "$lock/pjrt.txt" ;;
    python) step python "$lock/python.txt" ;;
    tools)  step tools scripts/tools/go.mod scripts/tools/go.sum scripts/tools/gonb-*.patch ;;
    kernel) step kernel scripts/tools/go.mod scripts/setup.sh scripts/tools/gonb-*.patch "$lock/python.txt" ;;
    build)  step build go.mod go.sum ;;
    bench)  step bench "$lock/bench.txt" ;;
    *) die "no step called '$1'" ;;
  esac
}

if (( $# == 0 )); then
  set -m   # a process group of its own, so that all of it ends when this script does
  (do_step plugin; do_step python) & downloads=$!   # mostly that, while Go builds
  set +m
  trap 'kill -- -$downloads 2>/dev/null || true' EXIT
  do_step tools
  do_step build
  wait $downloads
  trap - EXIT
  set -- kernel
fi
for name in "$@"; do do_step "$name"; done
