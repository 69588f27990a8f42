"""Verifies the results without the Go program: NumPy, from the files alone.

    .local/python/bin/python scripts/verify.py [--whole] [--seed N] [ROOT]

It computes again, and compares with the rows: the SHA-256 of every file; the problems, from their
seeds; the losses of stored policies; the closed loops of all methods but S5RL, with what networks
answer, on some problems that a new seed chooses, or on all. Exit status 3 if anything differs.
"""

import argparse
import fnmatch
import functools
import hashlib
import itertools
import json
import pathlib
import secrets
import sys

import numpy as np
import pyarrow.parquet as pq
from safetensors import safe_open

from methods import GAMMA, backup, draw, evaluate, optimum, pmd, run, softmax

LOOP = 1e-7, 1e-7  # relative and absolute, of forty rounds or more in float64, kept in float32
NETWORK = 5e-4, 5e-5  # of a network in float32, on other processors too
LEFT_OUT = "*=[es]*[1-9]/*", "*=none-S[18]*[1-9]/*", "*-S4-*/*-*", "*0[12]/*-*", "pmd*/*-*"
LEFT_OUT += "*-context800-*", "*-context21-steps40000-*", "*/*-6400.*"  # weights, run/file
KEY = ("method", "recipe", "s", "seed", "step", "family")
ROUND = {*KEY, "problem", "round", "loss", "gap", "e0", "zeta", "row_l1", "delta", "defect"}
TUNED = {*KEY, "start", "alpha", "beta", "problem", "round", "loss"}
FULL = {"confirmation", "shift", "benchmark", "frontier", "prior"}  # blocks with residuals
KEPT = FULL - {"frontier"} | {"critics", "long", "qualification"}  # with policies
ELSEWHERE = {"tuning", "ablation", "any", "backups", "calibration", "equal", "equal-sharpness", "families"}
ELSEWHERE |= {"mechanism", "heads", "sizes"}  # blocks that only the Go program computes again
CONTROLLERS = {  # of methods: the parts of their configuration
    "exact-pmd": set(),
    **dict.fromkeys(("sample-mean", "anchored-critic"), {"critic"}),
    **dict.fromkeys(("policyattention", "pmd-target", "reward-only"), {"actor"}),
    "policyattention-mixture": {"actor", "phi"},
    **{f"policyattention-{x}-critic": {"actor", "critic"} for x in ("learned", "anchored")},
    "policyattention-sample-mean": {"actor", "critic"},
    "liang-lai": {"liang_lai"},
    "actor-critic": {"actor_critic"},
    "algorithm-distillation": {"distill"},
    "s5rl": {"s5rl"},
}


def runs(path, names=KEY):
    """The columns of each run in a Parquet file, by the run's key; null is NaN."""
    table, found = pq.read_table(path), {}
    columns = {name: table[name].to_numpy() for name in table.column_names}
    change = np.any([columns[k][1:] != columns[k][:-1] for k in names], axis=0)
    for start, end in itertools.pairwise([0, *(np.flatnonzero(change) + 1), len(table)]):
        key = tuple(columns[k][start : start + 1].tolist()[0] for k in names)
        if key in found:
            raise ValueError(f"{path.name} has {key} twice")
        found[key] = {name: x[start:end] for name, x in columns.items()}
    return found


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def fixture(*name):
    """Problems with Q* [N, S, A], and how far Q of the first policies is from it [N]."""
    p, r, pi = draw(*name)
    best = optimum(p, r)
    return p, r, pi, best, np.abs(best - evaluate(p, r, pi[:, None])[:, 0]).max(axis=(1, 2))


def loss(problems, policies):
    """The losses [N, K] of policies [N, K, S, A]."""
    p, r, _, best, gap = problems
    return np.abs(best[:, None] - evaluate(p, r, policies)).max(axis=(2, 3)) / gap[:, None]


def heated(pi, t):
    """pi at a temperature: pi^(1/t), normalized; at 0 the first likeliest action."""
    if t == 0:
        return np.eye(pi.shape[-1])[pi.argmax(axis=-1)]
    with np.errstate(divide="ignore"):
        return softmax(np.log(pi) / t)


def effort(record):
    """On how many problems a run is made again, and the tolerance of its losses."""
    method, block = record["method"], record["block"]
    if method == "liang-lai":
        return 32, (1e-5, 1e-7)  # dense features may magnify rounding
    if method in ("exact-pmd", "sample-mean", "actor-critic"):
        return 64 if block == "headline" else 1000, LOOP
    if method == "anchored-critic":
        return 3, (1e-5, 1e-7)  # its network tells little beside the samples
    if method in ("algorithm-distillation", "policyattention-learned-critic"):
        return 1 if block == "headline" else 2, NETWORK
    if block == "long":
        return 2, (5e-4, 5e-4)  # 400 rounds
    return 8 if block == "headline" else 5, NETWORK


def named(t):
    """The name of the training run of a configuration."""
    if t.get("method") == "algorithm-distillation":
        kind = f"{t['method']}-source{t['source']['alpha']}-context{t['context']}-steps{t['steps']}-S{t['states']}"
    elif "objective" in t:
        kind = f"{t['objective']}-{t['recipe']['name']}-S{t['sizes'][0]}"
    else:
        kind = t.get("recipe", f"liang-lai-S{t.get('states')}")
    return f"{kind}-{t['seed']}"


def file_of(training, step):
    """The file of the weights after a step, the last for None."""
    return "weights.safetensors" if step in (None, training["steps"]) else f"weights-{step}.safetensors"


def trainings(config):
    """All trainings in a configuration, with the steps after which their weights are used."""
    if isinstance(config, dict):
        if "training" in config:
            yield config["training"], config.get("step", config["training"]["steps"])
        if "memory_critic" in config:
            yield config["memory_critic"], config["memory_critic"]["steps"]
        for part in config.values():
            yield from trainings(part)


def consistent(record):
    """Whether a record's key is of its configuration."""
    config, of = record["config"], record["config"]["problems"]
    controller = config.get("controller") or {}
    used = list(trainings(controller))
    seeds = [t["seed"] for t, _ in used if t.get("recipe") != "memory-critic"] or [record.get("seed", 0)]
    steps = [controller["actor"]["step"]] if record.get("step") else [record.get("step", 0)]
    critic = controller.get("critic", {})
    return (
        controller.keys() == CONTROLLERS[record["method"]]
        and {record["s"]} == {of["states"], *(t.get("states", of["states"]) for t, _ in used)}
        and record["family"] == of["family"]
        and {record.get("seed", 0)} == {*seeds}
        and {record.get("step", 0)} == {*steps}
        and critic.get("weight", 1) == 1
        and critic.get("anchored", True)
    )


class Verifier:
    def __init__(self, root, whole=False, seed=0):
        self.root, self.whole, self.seed, self.found, self.numbers = root, whole, seed, [], 0
        self.skipped, self.records = [], []

    def attempt(self, what, check, *args):
        try:
            check(*args)
        except Exception as e:  # a file that is none, that lacks a column, or has rows too many
            self.found.append(f"{what}: {e!r}")

    def verify(self):
        self.attempt("runs.json", self.read)
        for check in (self.files, self.problems, self.closed_loops):
            self.attempt(check.__name__, check)
        return self.found

    def read(self):
        records = json.loads((self.root / "runs.json").read_text())
        self.records = [x for x in records if "eta" in x["config"] and x["block"] != "tuning"]

    def agree(self, what, stored, again, relative=1e-10, absolute=1e-10):  # of linear solves
        stored = np.asarray(stored, float)
        again = np.broadcast_to(np.asarray(again, float), stored.shape)
        wrong = ~np.isclose(stored, again, relative, absolute, equal_nan=True)
        if wrong.any():
            place = np.argwhere(wrong)[0].tolist()
            first = f"{stored[wrong][0]} at {place}, computed again {again[wrong][0]}"
            self.found.append(f"{what}: {wrong.sum()} numbers differ, the first is {first}")
        self.numbers += stored.size

    def files(self):
        text = (self.root / "SHA256SUMS").read_text()
        sums = dict(reversed(line.split("  ", 1)) for line in text.splitlines())
        here = {p.relative_to(self.root).as_posix(): p for p in self.root.rglob("*")}
        for name in {name for name, p in here.items() if p.is_file()} | sums.keys():
            if name not in here:
                self.found.append(f"{name}: it is missing")
            elif name not in sums and name != "SHA256SUMS" and not name.startswith((".work/", "new/")):
                self.found.append(f"{name}: SHA256SUMS does not list it")
            elif name in sums and digest(here[name]) != sums[name]:
                self.found.append(f"{name}: its SHA-256 is not that of SHA256SUMS")

    def problems(self):
        groups = runs(self.root / "problems.parquet", ("family", "root", "s", "a"))
        asked = {}
        for x in self.records:
            f = x["config"]["problems"]
            asked[f["family"], f["root"], f["states"], f["actions"]] = f["problems"], x["block"]
        for group, (n, block) in asked.items():
            if block in FULL and group not in groups:
                self.found.append(f"problems {group}: they are missing")
        for group, x in groups.items():
            n = asked[group][0]
            again = np.arange(n), np.full(n, GAMMA), *draw(*group, n)
            for name, want in zip(("problem", "gamma", "p", "r", "pi0"), again):
                stored = np.stack(x[name]).reshape(want.shape)
                self.agree(f"problems {group}: {name}", stored, want, 1e-15, 1e-15)

    def closed_loops(self):
        blocks = {}
        for folder in ("rows", "policies", "choices"):
            for path in sorted((self.root / folder).glob("*")):
                name = path.name.removesuffix(".parquet")
                if name.removesuffix("-steps").removesuffix("-numbers") not in ELSEWHERE | {"qualification"}:
                    blocks[name] = []
        for x in self.records:
            blocks.setdefault(x["block"], []).append(x)
        for name, records in blocks.items():
            self.attempt(name, self.block, name, records)

    def block(self, name, records):
        paths = [self.root / f"{kind}/{name}.parquet" for kind in ("rows", "policies", "choices")]
        rows, *others = [runs(path) if path.exists() else {} for path in paths]
        for x in records:
            key = tuple(x.get(k, "" if k in ("recipe", "family") else 0) for k in KEY)
            what = f"{name}/{x['name']}"  # a key error says that it has no rows, or two records
            self.attempt(what, lambda: self.run(what, x, rows.pop(key), *[y.pop(key, None) for y in others]))
        self.found += [f"{name}: {key} has no record" for y in (rows, *others) for key in y]

    def run(self, what, record, rows, policies, choices):
        config, f = record["config"], record["config"]["problems"]
        if not consistent(record):
            raise ValueError("its configuration is of another run")
        problems = fixture(f["family"], f["root"], f["states"], f["actions"], f["problems"])
        brief = record["block"] == "headline"  # losses alone, in float32
        rounds = [0, *config.get("tabled", range(1, config["rounds"] + 1))][brief:]
        stored = {k: v.reshape(f["problems"], -1) for k, v in rows.items() if k not in KEY}
        self.columns(what, record, rows.keys(), stored, rounds, problems[-1][:, None])
        if record["block"] in KEPT:
            self.returned(what, config["kept"], policies, problems, stored, rounds)
        if choices:
            self.agree(f"{what}: problem of choices", choices["problem"], np.arange(f["problems"]))
            choices = np.stack(choices["actions"])
            if choices.shape[1] != 20 * config["rounds"] or not np.isin(choices, range(f["actions"])).all():
                raise ValueError("its choices are none")
        if record["method"] == "s5rl" or self.left_out(config):
            self.skipped.append(what)
        else:
            self.again(what, record, problems, stored, rounds, choices)

    def columns(self, what, record, names, stored, rounds, gap):
        """Compares all columns but what policies decide."""
        config, block = record["config"], record["block"]
        if names != (TUNED if "temperatures" in config else ROUND) or (block in KEPT) != ("kept" in config):
            raise ValueError("it has other columns, or other policies")
        expected = {"problem": np.arange(len(gap))[:, None], "round": rounds}
        if "temperatures" in config:
            expected |= {"round": config["rounds"], "alpha": config["temperatures"], "beta": np.nan}
            if (stored["start"] != "").any():
                raise ValueError("it has a start")
        else:
            expected |= {k: np.nan if block == "headline" else gap for k in ("gap", "e0")}
            for name, last in ("zeta", 1), ("row_l1", 1), ("defect", 1), ("delta", 2):  # rounds without
                without = np.arange(-len(rounds), 0) >= -last if block in FULL else True
                self.agree(f"{what}: {name}", np.isnan(stored[name]), without)
        for name, want in expected.items():
            self.agree(f"{what}: {name}", stored[name], want)

    def returned(self, what, kept, policies, problems, stored, rounds):
        """Scores stored policies."""
        n, s, a = problems[1].shape
        pi = np.stack(policies["policy"]).reshape(n, len(kept), s, a)
        for name, want in (("round", kept), ("problem", np.arange(n)[:, None])):
            self.agree(f"{what}: {name} of policies", policies[name].reshape(n, -1), want)
        self.agree(f"{what}: sums of policies", pi.sum(axis=-1), 1)
        losses = stored["loss"][:, [rounds.index(k) for k in kept]]
        self.agree(f"{what}: losses of policies", losses, loss(problems, pi), *LOOP)

    def again(self, what, record, problems, stored, rounds, choices):
        """Makes a run again on some of its problems."""
        config, (few, tolerance) = record["config"], effort(record)
        random = np.random.default_rng([self.seed, *what.encode()])  # which no one knows beforehand
        some = random.permutation(len(problems[0]))[: None if self.whole else few]
        stored, problems = {k: v[some] for k, v in stored.items()}, [x[some] for x in problems]
        taken = None if choices is None else choices[some]
        load = functools.partial(self.weights, record)
        policies, tables = run(config, problems[:3], some.tolist(), load, taken)
        hot = [heated(policies[:, -1], t) for t in config.get("temperatures", ())]
        scored = np.stack(hot, axis=1) if hot else policies[:, rounds]
        self.agree(f"{what}: loss", stored["loss"], loss(problems, scored), *tolerance)
        if record["block"] in FULL:
            if tolerance == NETWORK:  # its logits are large where it saw rewards alone
                tolerance = 2 * (2e-2 if record["method"] == "reward-only" else 5e-4,)
            self.residuals(what, stored, problems, policies, tables, config["eta"], tolerance)

    def residuals(self, what, stored, problems, policies, tables, eta, tolerance):
        """Compares what is by round with that of policies [N, T + 1, S, A] and tables [N, T, S, A]."""
        p, r = problems[:2]
        last = policies.shape[1] - 2
        if tables is None:  # of a method without: those of the exact critic
            tables = [evaluate(p, r, policies[:, :1])[:, 0]]
            for k in range(last):
                tables.append(backup(p, r, policies[:, k + 1], tables[k]))
            tables = np.stack(tables, axis=1)
        found = {"zeta": [], "row_l1": [], "defect": [], "delta": []}
        for k in range(last + 1):
            q, pi = tables[:, k], policies[:, k + 1]
            l1 = np.abs(pi - pmd(policies[:, k], q, eta)).sum(axis=-1)
            short = (pi * (q.max(axis=-1, keepdims=True) - q)).sum(axis=-1)
            found["zeta"].append(l1.max(axis=1))
            found["row_l1"].append(l1.mean(axis=1))
            found["defect"].append(np.einsum("nsat,nt->nsa", p, short).max(axis=(1, 2)))
            if k < last:
                found["delta"].append(np.abs(tables[:, k + 1] - backup(p, r, pi, q)).max(axis=(1, 2)))
        for name, values in found.items():
            self.agree(f"{what}: {name}", stored[name][:, : len(values)], np.transpose(values), *tolerance)

    def left_out(self, config):
        """Whether weights that a run needs are among those that are not stored."""
        for t, step in trainings(config.get("controller")):
            name, file = named(t), file_of(t, step)
            listed = any(fnmatch.fnmatch(f"{name}/{file}", pattern) for pattern in LEFT_OUT)
            if listed and not any(self.root.glob(f"train/{name}-{12 * '?'}/{file}")):
                return True
        return False

    def weights(self, record, training, step=None):
        """The weights that a run's record names, of this training."""
        name = named(training)
        for path in self.root.glob(f"train/{name}-{12 * '?'}/{file_of(training, step)}"):
            with safe_open(path, framework="numpy") as stored:
                if digest(path) == record["weights"][name] and json.loads(stored.metadata()["config"]) == training:
                    return {k: stored.get_tensor(k) for k in stored.keys()}
        raise ValueError("it was made from other weights, or by another training run")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path, nargs="?", default="artifacts/paper")
    parser.add_argument("--whole", action="store_true", help="run networks on all problems")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="of the choice")
    verifier = Verifier(**vars(parser.parse_args()))
    found = verifier.verify()
    skipped = f"{len(verifier.skipped)} loops are not run again (S5RL's, and those without stored weights)"
    print(*found, f"{verifier.numbers} numbers, seed {verifier.seed}: {len(found)} discrepancies; {skipped}", sep="\n")
    sys.exit(3 if found else 0)
