#!/usr/bin/env bash
# Starts the Go kernel: kernel.sh GONB --kernel CONNECTION_FILE [FLAG...]
# COMPLETE=off, for notebooks that nobody types into, leaves gopls out, whose folder is the first of PATH.
[[ ${COMPLETE-} != off ]] || PATH=${PATH#*:}
exec "$@"
