"""Races training steps and closed loops of this library against JAX and PyTorch programs of the same work.

    .local/bench/bin/python scripts/race.py [--turns N] [--seconds S] [--works 0,1,…]

policyattention/bench is our program, policyattention/bench/peers are theirs; all read the same exported weights
and data. Workers, one a program, are checked to compute the same numbers and then take turns: a change of the
machine's speed meets all of them, and who waits is idle. What was measured goes to artifacts/bench/bench.json
after every work, and its table into docs/speed.md. Without JAX or PyTorch the others race.
"""
import argparse, importlib.util, json, math, pathlib, re, statistics, string, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORED, DOCUMENT = ROOT / "artifacts/bench/bench.json", ROOT / "docs/speed.md"

# By program, as in "JAX, scan": its framework, then the variant.
PROGRAMS = {
    "PolicyAttention": "$bench serve $work $steps",
    "JAX": "$python $peers/jax_peer.py $problem",
    "JAX, scan": "$python $peers/jax_peer.py $problem $scan",
    "JAX, vmap": "$python $peers/jax_peer.py $problem $scan $runs",
    "PyTorch": "$python $peers/torch_peer.py $problem $threads",
    "PyTorch, compiled": "$python $peers/torch_peer.py $problem $threads compile",
}
FRAMEWORKS = ["PolicyAttention", "JAX", "PyTorch"]
MODULES = {"JAX": "jax", "PyTorch": "torch"}


def compare(ours, theirs, parity=100, tolerance=1e-4):
    """The largest relative difference between two lists of losses of float32 programs that sum in different orders.

    It is relative to the loss or, as an actor's loss passes through zero, to the root mean square of all of them
    where that is larger. A difference above the tolerance is an error. The tolerance grows linearly to five times
    itself at step `parity`: rounding errors of one step are inputs of the next, and on the same start and batches
    JAX and PyTorch come to differ from each other by 1.2e-4.
    """
    if not ours or len(theirs) < len(ours):
        raise ValueError(f"{len(theirs)} losses to compare with {len(ours)} of ours")
    typical, worst = math.sqrt(sum(x * x for x in ours) / len(ours)), 0
    for i, (x, y) in enumerate(zip(ours, theirs)):
        difference, allowed = abs(x - y) / max(abs(x), typical), tolerance * (1 + 4 * i / parity)
        if not difference <= allowed:
            raise ValueError(f"losses {i + 1} are {x} and {y}, want within {allowed:.2g}")
        worst = max(worst, difference)
    return worst


class Worker:
    """A running program. It writes its losses, and then, for each number of steps, the seconds that they took."""

    def __init__(self, command, threads):
        self.process = subprocess.Popen(["env", f"OMP_NUM_THREADS={threads}", *command], text=True, cwd=ROOT,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise ValueError("it ended")
        return json.loads(line)

    def begin(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Contender:
    """A program in a race, with its processes, each on processors of its own."""

    def __init__(self, work, name, command, processes, threads):
        self.result = {"row": work, "program": name, "setting": f"{processes} × {threads}", "steps_s": 0,
                       "steps_s_mid": 0, "steps_cpu_s": 0, "largest_relative_difference": 0}
        # XLA sizes its pools of threads by the affinity mask.
        self.workers = [Worker(["taskset", "-c", f"{n * threads}-{(n + 1) * threads - 1}", *command], threads)
                        for n in range(processes)]
        self.turn, self.speeds = 2, []

    def take(self, seconds):
        """Has all processes make a turn at once. The first finds how many steps a turn has."""
        for w in self.workers:
            w.begin(self.turn)
        answers = [w.read() for w in self.workers]
        speed = sum(a["steps"] / a["wall"] for a in answers)
        if not seconds:
            self.speeds.append(speed)
            cpu = statistics.mean(a["steps"] / a["cpu"] for a in answers)
            self.result["steps_cpu_s"] = max(self.result["steps_cpu_s"], cpu)
        else:
            self.turn = math.ceil(speed / len(answers) * seconds)


def race(work, commands, processes, threads, turns, seconds):
    """The results of programs, by name their commands. One that cannot be started, or computes other numbers than
    the first, has no speed but an error."""
    all, ours = [], None
    try:
        for name, command in commands.items():
            c = Contender(work, name, command, processes, threads)
            all.append(c)
            try:
                for w in c.workers:
                    losses = w.read()["losses"]
                    ours = ours or losses
                    c.result["largest_relative_difference"] = compare(ours, losses)
            except (ValueError, KeyError) as e:
                c.result["error"] = f"{command}: {e}"
            print(work, *list(c.result.values())[1:], sep=", ", file=sys.stderr)
        racing = [c for c in all if "error" not in c.result]
        for turn in range(turns + 1):
            for c in racing:
                c.take(0 if turn else seconds)
        for c in racing:
            c.result |= {"steps_s": max(c.speeds), "steps_s_mid": statistics.median(c.speeds)}
    finally:
        for c in all:
            for w in c.workers:
                w.close()
    return [c.result for c in all]


def table(stored):
    """The race as the document shows it: the best variant of each framework."""
    rows = [["work", "processes × threads", *FRAMEWORKS, "over the better peer"]]
    races = dict.fromkeys((r["row"], r["setting"]) for r in stored["results"])
    for key in races:
        best = dict.fromkeys(FRAMEWORKS, (0, ""))
        for r in stored["results"]:
            framework, _, variant = r["program"].partition(",")
            if (r["row"], r["setting"]) == key:
                best[framework] = max(best[framework], (r["steps_s"], variant), key=lambda x: x[0])
        peer = max(best["JAX"][0], best["PyTorch"][0])
        ratio = f"{best['PolicyAttention'][0] / peer:.2f}" if peer else ""
        rows.append([*key, *(f"{speed:.3g}{variant}" for speed, variant in best.values()), ratio])
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, ["-" * w for w in widths])
    lines = ["| " + " | ".join(entry.ljust(w) for entry, w in zip(row, widths)) + " |" for row in rows]
    m = stored["machine"]
    note = f"{m['cpu']}, {m['cores']} cores, {m['platform']}, {m['go']}, load at the start " + \
        stored["load_average_at_start"] + "."
    return "\n".join([*lines, "", note, ""])


def fill(text, stored):
    """The document with the table between its markers."""
    return re.sub(r"(<!-- table: race -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{table(stored)}\n{m[2]}", text,
                  flags=re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5, help="turns of each worker")
    parser.add_argument("--seconds", type=float, default=2, help="length of a turn")
    parser.add_argument("--works", help="which of the works, as in 0,5 (default: all)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench, problem = folder + "/bench", folder + "/problem.safetensors"
        call = lambda *command: subprocess.run(map(str, command), cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        call("go", "build", "-o", bench, "./policyattention/bench")
        described = json.loads(call(bench, "works"))
        stored = {"machine": described["machine"], "load_average_at_start": open("/proc/loadavg").read().strip(),
                  "results": []}
        works = range(len(described["works"]))
        for at in map(int, arguments.works.split(",")) if arguments.works else works:
            w = described["works"][at]
            for processes, steps in (1, w["parity"]), (2, min(w["parity"], w["scan"])):  # enough to see a difference
                threads = 3 - processes
                call(bench, "export", at, steps, problem)
                values = {"bench": bench, "python": sys.executable, "peers": ROOT / "policyattention/bench/peers",
                          "problem": problem, "work": at, "steps": steps, "threads": threads, **w}
                commands = {
                    name: string.Template(command).substitute(values).split() for name, command in PROGRAMS.items()
                    if (name.split(",")[0] not in MODULES or importlib.util.find_spec(MODULES[name.split(",")[0]]))
                    and not ("$runs" in command and w["runs"] == 1)}
                stored["results"] += race(w["name"], commands, processes, threads, arguments.turns, arguments.seconds)
                STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
                DOCUMENT.write_text(fill(DOCUMENT.read_text(), stored))
    sys.exit("\n".join(r["error"] for r in stored["results"] if "error" in r) or 0)


if __name__ == "__main__":
    main()
