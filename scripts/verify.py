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

LOOP = 1e-7  # of forty rounds or more in float64, and of numbers kept in float32
NETWORK = 5e-4  # of forty rounds of a network in float32
LEFT_OUT = "*=[es]*[1-9]/*", "*=none-S[18]*[1-9]/*", "*-S4-*/*-*", "*0[12]/*-*", "pmd*/*-*"
LEFT_OUT += "*-context800-*", "*-context21-steps40000-*"  # weights, run/file
KEY = ("method", "recipe", "s", "seed", "step", "family")


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
    """On how many problems a run is made again, and the tolerance of what comes out."""
    c, block = record["config"].get("controller") or {}, record["block"]
    if "s5rl" in c:
        return 0, 0
    if not {"actor", "distill"} & c.keys() and not {"training", "memory_critic"} & c.get("critic", {}).keys():
        few = 32 if block.startswith("headline") else 1000
        return few, 1e-5 if "liang_lai" in c else LOOP  # dense features magnify rounding
    if "distill" in c:
        return (1 if block == "headline" else 2), NETWORK
    if c.get("actor", {"training": {"objective": ""}})["training"]["objective"] == "reward-only":
        return 6, 2e-2  # its logits are large
    if "actor" not in c:
        return 3, 1e-5  # its network tells little beside the samples
    if "training" in c.get("critic", {}):
        return 2, NETWORK
    return {"headline": 10, "long": 2}.get(block, 6), NETWORK


class Verifier:
    def __init__(self, root, whole=False, seed=0):
        self.root, self.whole, self.seed, self.found, self.numbers = root, whole, seed, [], 0

    def attempt(self, what, check, *args):
        try:
            check(*args)
        except Exception as e:  # a file that is none, that lacks a column, or has rows too many
            self.found.append(f"{what}: {e!r}")

    def verify(self):
        for check in (self.files, self.problems, self.closed_loops):
            self.attempt(check.__name__, check)
        return self.found

    def agree(self, what, stored, again, tolerance=1e-10):  # of linear solves
        stored = np.asarray(stored, float)
        again = np.broadcast_to(np.asarray(again, float), stored.shape)
        wrong = ~np.isclose(stored, again, tolerance, tolerance, equal_nan=True)
        if wrong.any():
            first = f"{stored[wrong][0]}, computed again {again[wrong][0]}"
            self.found.append(f"{what}: {wrong.sum()} numbers differ, the first is {first}")
        self.numbers += stored.size

    def files(self):
        text = (self.root / "SHA256SUMS").read_text()
        sums = dict(reversed(line.split("  ", 1)) for line in text.splitlines())
        here = {p.relative_to(self.root).as_posix(): p for p in self.root.rglob("*")}
        for name in {name for name, p in here.items() if p.is_file()} | sums.keys():
            if name not in here:
                self.found.append(f"{name}: it is missing")
            elif name not in sums and not name.startswith((".work/", "new/", "SHA256SUMS")):
                self.found.append(f"{name}: SHA256SUMS does not list it")
            elif name in sums and digest(here[name]) != sums[name]:
                self.found.append(f"{name}: its SHA-256 is not that of SHA256SUMS")

    def problems(self):
        groups = runs(self.root / "problems.parquet", ("family", "root", "s", "a"))
        for group, x in groups.items():
            n = len(x["problem"])
            again = np.arange(n), np.full(n, GAMMA), *draw(*group, n)
            for name, want in zip(("problem", "gamma", "p", "r", "pi0"), again):
                stored = np.stack(x[name]).reshape(want.shape)
                self.agree(f"problems {group}: {name}", stored, want, 1e-15)

    def closed_loops(self):
        records = json.loads((self.root / "runs.json").read_text())
        records = [x for x in records if "eta" in x["config"]]
        for block in sorted({x["block"] for x in records} - {"tuning"}):
            self.attempt(block, self.block, block, [x for x in records if x["block"] == block])

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
        n, shape, numbers = f["problems"], (f["states"], f["actions"]), np.arange(f["problems"])
        problems = fixture(f["family"], f["root"], *shape, n)
        brief = record["block"] == "headline"  # losses alone, in float32
        rounds = [0, *config.get("tabled", range(1, config["rounds"] + 1))][brief:]
        stored = {k: v.reshape(n, -1) for k, v in rows.items() if k not in (*KEY, "start")}
        self.agree(f"{what}: problem", stored["problem"], numbers[:, None])
        if "temperatures" in config:
            self.agree(f"{what}: round", stored["round"], config["rounds"])
            self.agree(f"{what}: alpha", stored["alpha"], config["temperatures"])
        else:
            self.agree(f"{what}: round", stored["round"], rounds)
            self.agree(f"{what}: gap", stored["gap"], np.nan if brief else problems[-1][:, None])
        if "kept" in config or policies:
            kept = config["kept"]
            of = np.stack(policies["policy"]).reshape(n, len(kept), *shape)
            losses = stored["loss"][:, [rounds.index(k) for k in kept]]
            for name, again in (("round", kept), ("problem", numbers[:, None])):
                self.agree(f"{what}: {name} of policies", policies[name].reshape(n, -1), again)
            self.agree(f"{what}: sums of policies", of.sum(axis=-1), 1)
            self.agree(f"{what}: losses of policies", losses, loss(problems, of), LOOP)
        few, tolerance = effort(record)
        if few == 0 or self.left_out(record):
            return
        if choices:
            self.agree(f"{what}: problem of choices", choices["problem"], numbers)
        random = np.random.default_rng([self.seed, *what.encode()])  # which no one knows beforehand
        some = random.permutation(n)[: n if self.whole else few]
        stored, problems = {k: v[some] for k, v in stored.items()}, [x[some] for x in problems]
        taken = np.stack(choices["actions"][some]) if choices else None
        load = functools.partial(self.weights, record)
        policies, tables = run(config, problems[:3], some.tolist(), load, taken)
        if "temperatures" in config:
            scored = np.stack([heated(policies[:, -1], t) for t in config["temperatures"]], axis=1)
        else:
            scored = policies[:, rounds]
        self.agree(f"{what}: loss", stored["loss"], loss(problems, scored), tolerance)
        if "zeta" in stored and not np.isnan(stored["zeta"]).all():  # by round
            self.residuals(what, stored, problems, policies, tables, config["eta"], tolerance)

    def residuals(self, what, stored, problems, policies, tables, eta, tolerance):
        """Compares what is by round with that of policies [N, T + 1, S, A] and tables [N, T, S, A]."""
        p, r, _, _, gap = problems
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
        self.agree(f"{what}: e0", stored["e0"], gap[:, None])
        for name, values in found.items():
            self.agree(f"{what}: {name}", stored[name][:, : len(values)], np.transpose(values), tolerance)

    def left_out(self, record):
        """Whether weights of a run are missing that may be."""
        file = f"weights-{record['step']}.safetensors" if record.get("step") else "weights.safetensors"
        missing = [x for x in record.get("weights", ()) if not [*self.files_of(x, file)]]
        return any(fnmatch.fnmatch(f"{x}/{file}", pattern) for x in missing for pattern in LEFT_OUT)

    def files_of(self, name, file):
        return self.root.glob(f"train/{name}-{12 * '?'}/{file}")

    def weights(self, record, training, step=None):
        """The weights of a run that came from this training."""
        file = "weights.safetensors" if step in (None, training["steps"]) else f"weights-{step}.safetensors"
        for name, sha in record["weights"].items():
            for path in self.files_of(name, file):
                with safe_open(path, framework="numpy") as stored:
                    if digest(path) == sha and json.loads(stored.metadata()["config"]) == training:
                        return {k: stored.get_tensor(k) for k in stored.keys()}
        raise ValueError("it was made from other weights, or by another training run")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path, nargs="?", default="artifacts/paper")
    parser.add_argument("--whole", action="store_true", help="run networks on all problems")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="of the choice")
    verifier = Verifier(**vars(parser.parse_args()))
    found = verifier.verify()
    print(*found, f"{verifier.numbers} numbers, seed {verifier.seed}: {len(found)} discrepancies", sep="\n")
    sys.exit(3 if found else 0)
