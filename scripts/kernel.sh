#!/usr/bin/env bash
# Starts the Go kernel: kernel.sh GONB --kernel CONNECTION_FILE [FLAG...]
# COMPLETE=off, for notebooks that nobody types into, leaves gopls out.
export GONB_COMPLETE=${COMPLETE:-on}
# At presets smoke and quick XLA takes longer to link and to compile than pure Go to compute; at
# quick only where pure Go has its vector kernels.
vectors() { [[ -z ${GOMLX_BACKEND-} && ${GOEXPERIMENT-} = simd ]] && grep -qsw avx512vl /proc/cpuinfo; }
preset=${POLICYATTENTION_PRESET:-}
if [[ $preset = smoke || $preset = quick ]] && { [[ $preset = smoke ]] || vectors; }; then
  export GONB_LEAN_UNLESS='^$' GOMLX_BACKEND=go
fi
exec "$@"
