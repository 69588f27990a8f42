#!/usr/bin/env bash
# Starts the Go kernel: kernel.sh GONB --kernel CONNECTION_FILE [FLAG...]
# COMPLETE=off, for notebooks that nobody types into, leaves gopls out.
export GONB_COMPLETE=${COMPLETE:-on}
# At preset smoke XLA takes longer to link and to compile than pure Go to compute.
if [[ ${POLICYATTENTION_PRESET:-} = smoke ]]; then
  export GONB_LEAN_UNLESS='^$' GOMLX_BACKEND=go
fi
exec "$@"
