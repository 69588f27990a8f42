#!/usr/bin/env bash
# Starts the Go kernel: kernel.sh GONB --kernel CONNECTION_FILE [FLAG...]
# Beside it, one completion is asked for, so that gopls has read the packages by the time
# a reader presses Tab. WARM=0, for notebooks that nobody types into, leaves that out.
scripts=$(dirname "${BASH_SOURCE[0]}")
if [[ ${WARM:-1} != 0 ]]; then
  ("$scripts/../.local/python/bin/python" "$scripts/warm.py" "$3" >/dev/null 2>&1 &)
fi
# At preset smoke XLA takes longer to link and to compile than pure Go to compute.
if [[ ${POLICYATTENTION_PRESET:-} = smoke ]]; then export GONB_LEAN_UNLESS='^$' GOMLX_BACKEND=go; fi
exec "$@"
