#!/usr/bin/env bash
# Runs the grid of a preset on this machine.
#
#   ./run.sh [--plugin FILE|FOLDER] [--backend NAME] [--preset NAME] [--artifacts FOLDER]
#            [--together N] [--steps-per-call N]
#
# Called again, it goes on where it was.
#
# --plugin         the PJRT plugin of XLA for CUDA (in the wheels jax-cuda13-pjrt and
#                  xla-cuda13-pjrt, or from 'make plugin'); CUDA's and cuDNN's own libraries
#                  are found by the loader, e.g. through LD_LIBRARY_PATH
# --backend        xla:cuda (default; matrix products in TF32), xla:cuda,tf32=false, or
#                  xla:cpu with the plugin that is here
# --preset         paper (default), quick, smoke
# --artifacts      where results go (default: artifacts, here)
# --together       training runs at once on the device (default: 3)
# --steps-per-call optimizer steps in a call of the device (default: 100)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
die() { echo "run.sh: $*" >&2; exit 2; }
plugin= backend=xla:cuda preset=paper artifacts=$here/artifacts together=3 steps_per_call=100
while (($#)); do
  case $1 in
    --plugin|--backend|--preset|--artifacts|--together|--steps-per-call)
      (($# > 1)) || die "$1 wants a value"
      name=${1#--}; declare "${name//-/_}=$2"; shift 2 ;;
    *) die "unknown argument $1; see the head of this file" ;;
  esac
done

if [[ -f $plugin ]]; then # under the name that is looked for
  mkdir -p "$here/cuda"
  ln -sf "$(realpath "$plugin")" "$here/cuda/pjrt_c_api_cuda_plugin.so"
  plugin=$here/cuda
fi
export PJRT_PLUGIN_LIBRARY_PATH=${plugin:+$plugin:}${PJRT_PLUGIN_LIBRARY_PATH:+$PJRT_PLUGIN_LIBRARY_PATH:}$here/pjrt
export GOMLX_NO_AUTO_INSTALL=1
exec "$here/policyattention" --backend "$backend" --preset "$preset" --artifacts "$artifacts" \
  reproduce --together "$together" --steps-per-call "$steps_per_call"
