"""Asks a Go kernel that has just been started for a completion: warm.py CONNECTION_FILE

The kernel's gopls reads the packages of the repository for it, and later completions are
answered at once.
"""

import sys

from jupyter_client import BlockingKernelClient

CELL = 'import "icrl/policyattention/nb"\n\n%%\nnb.'


def main(connection_file):
    client = BlockingKernelClient(connection_file=connection_file)
    client.load_connection_file()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        client.complete(CELL, len(CELL), reply=True, timeout=60)
    finally:
        client.stop_channels()


if __name__ == "__main__":
    main(sys.argv[1])
