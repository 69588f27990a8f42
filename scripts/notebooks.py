"""Executes notebooks in the project's Go kernel.

    .local/python/bin/python scripts/notebooks.py [--preset PRESET] [--out DIR] [NOTEBOOK...]

Without --out a notebook is replaced by its executed self, and left alone if a cell fails;
with it, executed notebooks are written to DIR, the failed ones too. The preset reaches the
cells as POLICYATTENTION_PRESET. The exit status is 1 if any notebook failed.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import nbformat
import psutil
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"


class NotebookError(Exception):
    """A notebook that ran but must not be kept."""


def session(leader):
    """The processes of the session that a kernel leads; its cells stay in it as orphans."""
    members = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == leader:
                members.append(psutil.Process(pid))
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue
    return members


def end(processes):
    for process in processes:
        try:
            process.kill()
        except psutil.Error:
            pass
    psutil.wait_procs(processes, timeout=5)


def execute(notebook, folder, timeout):
    """Runs every cell of a notebook in place, in a fresh kernel that works in folder."""
    with tempfile.TemporaryDirectory() as temporary:  # gonb, when killed, leaves its files
        os.environ["TMPDIR"] = temporary
        run_cells(notebook, folder, timeout)


def run_cells(notebook, folder, timeout):
    client = NotebookClient(
        notebook,
        kernel_name="gonb",
        timeout=timeout,
        startup_timeout=120,
        shutdown_kernel="immediate",  # a graceful end waits for the cell that timed out
        coalesce_streams=True,  # where prints happen to be cut must not show
        record_timing=False,  # executed notebooks are committed: nothing that differs every time
        resources={"metadata": {"path": str(folder)}},
    )
    leader = None
    try:
        with client.setup_kernel(stderr=subprocess.DEVNULL):  # the kernel's own log
            leader = client.km.provisioner.pid
            # As JupyterLab writes it when it saves a notebook, which then stays as it is.
            notebook.metadata.language_info = client.kc.kernel_info(reply=True, timeout=60)["content"]["language_info"]
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
    finally:
        if leader is not None:
            end(session(leader))


def check(notebook):
    """Raises NotebookError where an output would not be the same on another machine."""
    for number, cell in enumerate(notebook.cells):
        if str(ROOT) in nbformat.writes(nbformat.v4.new_notebook(cells=[cell])):
            raise NotebookError(f"cell {number} or its output holds this repository's own path")


def write(notebook, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".tmp")
    nbformat.write(notebook, new)
    new.replace(path)


def run(path, out, timeout):
    notebook = nbformat.read(path, as_version=4)
    try:
        execute(notebook, path.parent, timeout)
        check(notebook)
    except (CellExecutionError, CellTimeoutError, DeadKernelError, NotebookError) as error:
        print(f"{path.name}: failed\n{error}", file=sys.stderr)
        if out:
            write(notebook, out / path.name)
        return False
    write(notebook, out / path.name if out else path)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=pathlib.Path, help="default: all of notebooks/")
    parser.add_argument("--preset", choices=["smoke", "quick", "paper"],
                        default=os.environ.get("POLICYATTENTION_PRESET") or "quick")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the executed notebooks")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a cell may take")
    arguments = parser.parse_args()

    os.environ["POLICYATTENTION_PRESET"] = arguments.preset
    os.environ["JUPYTER_DATA_DIR"] = str(ROOT / ".local/jupyter")
    os.environ["WARM"] = "0"  # nobody presses Tab
    os.environ["JUPYTER_RUNTIME_DIR"] = str(ROOT / ".local/jupyter/runtime")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that kernels are ended

    failed = 0
    paths = [p.resolve() for p in arguments.notebooks] or sorted(NOTEBOOKS.glob("*.ipynb"))
    for path in paths:
        start = time.monotonic()
        ok = run(path, arguments.out, arguments.timeout)
        failed += not ok
        print(f"{path.name}: {'ok' if ok else 'FAILED'}, {time.monotonic() - start:.1f} s", flush=True)
    print(f"{len(paths) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
