"""Executes notebooks in the project's Go kernel.

    .local/python/bin/python scripts/notebooks.py [--preset PRESET] [--out DIR] [--jobs N] [NOTEBOOK...]

Without --out a notebook is replaced by its executed self, and left alone if a cell fails;
with it, executed notebooks are written to DIR, the failed ones too. The preset reaches the
cells as POLICYATTENTION_PRESET. The exit status is 1 if any notebook failed.
"""

import argparse
import copy
import hashlib
import math
import multiprocessing
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import nbformat
import psutil
from jupyter_core.utils import run_sync
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


async def language(client):
    reply = await client.kc.kernel_info(reply=True, timeout=60)
    return reply["content"]["language_info"]


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
            notebook.metadata.language_info = run_sync(language)(client)
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
    finally:
        if leader is not None:
            end(session(leader))


def digest(notebook):
    """Names the code that outputs came from; a test holds it against the code that is there."""
    sources = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(sources.encode()).hexdigest()[:16]


def shown(cell):
    """What a cell shows, as text."""
    return "\n".join(
        output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


LAYOUT = re.compile(r"[\s─]+")  # columns are as wide as their numbers
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def same(old, new):
    """Whether two texts agree, but for numbers in their last digits."""
    if LAYOUT.sub(" ", NUMBER.sub("#", old)) != LAYOUT.sub(" ", NUMBER.sub("#", new)):
        return False
    pairs = zip(NUMBER.findall(old), NUMBER.findall(new))
    return all(math.isclose(float(x), float(y), rel_tol=0.05, abs_tol=1e-6) for x, y in pairs)


def compare(committed, executed):
    """Raises NotebookError where committed outputs are not what their cells show now.

    Left out are cells with a tag: "varies" for those whose outputs are not the same on every
    machine; "stored" for those that show stored evidence, where the preset has its own.
    """
    rows = ROOT / "artifacts" / os.environ.get("POLICYATTENTION_PRESET", "") / "rows"
    ignored = {"varies", "stored"} if rows.exists() else {"varies"}
    for number, (old, new) in enumerate(zip(committed.cells, executed.cells)):
        if old.cell_type != "code" or ignored & set(old.metadata.get("tags", [])):
            continue
        if not same(shown(old), shown(new)):
            raise NotebookError(f"the outputs of cell {number} are stale, run make notebooks PRESET=paper "
                                f"(or tag the cell, if it shows stored evidence):\n"
                                f"{shown(old)}\n--- now ---\n{shown(new)}")


def check(notebook):
    """Raises NotebookError where the notebook is not valid, or an output would not be the same
    on another machine or did not reach the kernel, or an exercise is solved before it is tried,
    or not by its solution."""
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise NotebookError(f"not a valid notebook: {error}") from error
    for number, cell in enumerate(notebook.cells):
        if any("GoNB pipe" in output.get("text", "") for output in cell.get("outputs", [])):
            raise NotebookError(f"cell {number} could not show something: {shown(cell)}")
    for number, cell in enumerate(notebook.cells):
        for tag, want in {"exercise": "✗ not yet", "solution": "✓ solved"}.items():
            if tag in cell.metadata.get("tags", []) and want not in shown(cell):
                raise NotebookError(f"cell {number}, {tag}, shows {shown(cell)!r}")
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
    committed = copy.deepcopy(notebook)
    try:
        execute(notebook, path.parent, timeout)
        check(notebook)
        if out:
            compare(committed, notebook)
        notebook.metadata["outputs"] = {"of": digest(notebook)}
    except (CellExecutionError, CellTimeoutError, DeadKernelError, NotebookError) as error:
        print(f"{path.name}: failed\n{error}", file=sys.stderr)
        if out:
            write(notebook, out / path.name)
        return False
    write(notebook, out / path.name if out else path)
    return True


def ended(*_):
    sys.exit(143)  # what ends kernels is done on the way


def run_all(paths, out, timeout, passed):
    """Counts in passed, which processes share."""
    signal.signal(signal.SIGTERM, ended)
    for path in paths:
        start = time.monotonic()
        ok = run(path, out, timeout)
        with passed.get_lock():
            passed.value += ok
        print(f"{path.name}: {'ok' if ok else 'FAILED'}, {time.monotonic() - start:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=pathlib.Path, help="default: all of notebooks/")
    parser.add_argument("--preset", choices=["smoke", "quick", "paper"],
                        default=os.environ.get("POLICYATTENTION_PRESET") or "quick")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the executed notebooks")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a cell may take")
    parser.add_argument("--jobs", type=int, default=1, help="how many are executed at a time")
    arguments = parser.parse_args()

    os.environ["POLICYATTENTION_PRESET"] = arguments.preset
    os.environ["JUPYTER_DATA_DIR"] = str(ROOT / ".local/jupyter")
    os.environ["COMPLETE"] = "off"  # nobody presses Tab
    os.environ["JUPYTER_RUNTIME_DIR"] = str(ROOT / ".local/jupyter/runtime")
    signal.signal(signal.SIGTERM, ended)

    paths = [p.resolve() for p in arguments.notebooks] or sorted(NOTEBOOKS.glob("*.ipynb"))
    if arguments.jobs < 1:
        parser.error(f"--jobs {arguments.jobs}, want at least 1")
    shares = [paths[i :: arguments.jobs] for i in range(arguments.jobs)]
    passed = multiprocessing.Value("i", 0)
    workers = [multiprocessing.Process(target=run_all, args=(share, arguments.out, arguments.timeout, passed), daemon=True)
               for share in shares]  # daemons end with this process
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    failed = len(paths) - passed.value  # those of a process that died too
    print(f"{passed.value} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
