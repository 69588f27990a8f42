"""Verifies the results without the Go program: NumPy, from the files alone.

    .local/python/bin/python scripts/verify.py [--whole] [--seed N] [ROOT]

It computes again, and compares with the rows: the SHA-256 of every file; the problems, from their
seeds; the losses of stored policies; all of exact PMD; the loops of networks from their weights, on
six problems each (16 of thousands) that a new seed chooses, or on all. Exit status 3 if anything
differs. As a module it has draw, evaluate, optimum, pmd, transformer, actor.
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

GAMMA = 0.9
LOOP = 1e-7  # of forty rounds or more of exact PMD, and of numbers kept in float32
NETWORK = 5e-4  # of forty rounds of a network in float32
LEFT_OUT = "*=[es]*[1-9]/*", "*=none-S[18]*[1-9]/*", "*-S4-*/*-*", "*0[12]/*-*", "pmd*/*-*"
KEY = ("method", "recipe", "s", "seed", "step", "family")


def key(root, *path):
    """The key of a stream: the SHA-256 of its name."""
    name = "".join("/" + json.dumps(part) for part in path)
    return hashlib.sha256(root.to_bytes(8, "little") + name.encode()).digest()


def streams(keys, count):
    """The first outputs [keys, count] of 64 bits: ChaCha8 as in c2sp.org/chacha8rand."""
    seed, output = np.frombuffer(b"".join(keys), "<u4").reshape(-1, 8), []
    for _ in range(0, count, 124):
        x = np.zeros((4, 4, len(keys), 16), np.uint32)  # sixteen words of each of sixteen blocks
        x[0].T[:] = 0x61707865, 0x3320646E, 0x79622D32, 0x6B206574
        x[1:3] = seed.T.reshape(2, 4, -1, 1)
        x[3, 0] = np.arange(16)
        for turn in 4 * (-1, 1):  # of columns, then of diagonals
            for i, j, k, bits in ((0, 1, 3, 16), (2, 3, 1, 12), (0, 1, 3, 8), (2, 3, 1, 7)):
                x[i] += x[j]
                x[k] ^= x[i]
                x[k] = x[k] << bits | x[k] >> 32 - bits
            x[:] = [np.roll(x[i], i * turn, axis=0) for i in range(4)]
        x[1:3] += seed.T.reshape(2, 4, -1, 1)
        words = x.reshape(16, len(keys), 4, 4).transpose(1, 2, 0, 3)  # of four blocks in turn
        block = np.ascontiguousarray(words).reshape(len(keys), 256).view("<u8")
        output.append(block[:, :124])
        seed = np.ascontiguousarray(block[:, 124:]).view("<u4")
    return np.concatenate(output, axis=1)[:, :count]


def uniform(x):
    return (x & np.uint64((1 << 53) - 1)) / (1 << 53)


def below(x, n):
    """Integers in [0, n), as math/rand/v2 makes them but for rejections, one in 2^32/n."""
    if n & (n - 1) == 0:
        return (x & np.uint64(n - 1)).astype(int)
    return ((x >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(int)


def dirichlet(x):
    """Rows of Dirichlet(1) along the last axis: normalized exponential variates."""
    rows = -np.log(1 - uniform(x))
    return rows / rows.sum(axis=-1, keepdims=True)


def draw(family, root, s, a, n):
    """The first n problems: transitions [N, S, A, S], rewards [N, S, A], policies [N, S, A]."""
    every, kind = np.arange(n), [family, s, a]
    columns = iter(streams([key(root, "mdp", *kind, i) for i in range(n)], s * a * (s + 2) + 1).T)

    def take(*shape):
        return np.stack([next(columns) for _ in range(np.prod(shape))], axis=1).reshape(n, *shape)

    p, r = np.zeros((n, s, a, s)), np.zeros((n, s, a))
    if family == "ring":
        for i, j in np.ndindex(s, a):
            r[:, i, j] = np.cos(2 * np.pi * i / s) / 4
            for to, weight in ((i + j - 1, 0.8), (i + 1, 0.1), (i - 1, 0.1)):
                p[:, i, j, to % s] += weight
    else:
        if family == "sparse-transitions":
            for i, j in np.ndindex(s, a):
                weights, order = dirichlet(take(2)), np.tile(np.arange(s), (n, 1))
                for k in range(s - 1, 0, -1):  # Fisher and Yates
                    other = below(take(1)[:, 0], k + 1)
                    order[every, other], order[:, k] = order[:, k], order[every, other]
                p[every[:, None], i, j, order[:, :2]] = weights
        else:
            p = dirichlet(take(s, a, s))
        if family == "strong-mixing":
            p = 0.1 * p + 0.9 / s
        r = 2 * uniform(take(s, a)) - 1
        if family == "sparse-rewards":
            always = below(take(1), s * a)
            keep = uniform(take(s, a)) < 0.25
            r[~keep & (np.arange(s * a) != always).reshape(n, s, a)] = 0
    pi = streams([key(root, "pi0", *kind, i) for i in range(n)], s * a)
    return p, r, dirichlet(pi.reshape(n, s, a))


def evaluate(p, r, pi):
    """Q^pi [N, K, S, A] of policies [N, K, S, A]."""
    chain = np.einsum("nksa,nsat->nkst", pi, p)
    rewards = np.einsum("nksa,nsa->nks", pi, r)
    v = np.linalg.solve(np.eye(p.shape[1]) - GAMMA * chain, rewards[..., None])[..., 0]
    return r[:, None] + GAMMA * np.einsum("nsat,nkt->nksa", p, v)


def optimum(p, r):
    """Q* [N, S, A] by policy iteration."""
    pi = np.full(r.shape, 1 / r.shape[2])
    while True:
        q = evaluate(p, r, pi[:, None])[:, 0]
        better = q.max(axis=2) > (pi * q).sum(axis=2) + 1e-13
        if not better.any():
            return q
        pi[better] = np.eye(r.shape[2])[q.argmax(axis=2)[better]]


def softmax(z):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def pmd(pi, q, eta):
    """The step of policy mirror descent: pi exp(eta Q), normalized."""
    with np.errstate(divide="ignore"):
        return softmax(np.log(pi) + eta * q)


def transformer(weights, h, layers, heads, causal):
    """Outputs [..., T, outputs] of a network for tokens [..., T, features]."""

    def linear(name, x):
        y = x.reshape(-1, x.shape[-1]) @ weights[name + ".weight"] + weights[name + ".bias"]
        return y.reshape(*x.shape[:-1], -1)

    def norm(name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)
        return x * weights[name + ".gain"] + weights[name + ".bias"]

    h = linear("embed", h)
    mask = np.triu(np.full((h.shape[-2],) * 2, -np.inf if causal else 0, h.dtype), 1)
    for layer in range(layers):
        block = f"blocks.{layer}."
        qkv = linear(block + "qkv", norm(block + "norm1", h))
        q, k, v = np.moveaxis(qkv.reshape(*h.shape[:-1], 3, heads, -1), (-3, -2), (0, -3))
        mixed = softmax(q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5 + mask) @ v
        h = h + linear(block + "out", np.moveaxis(mixed, -3, -2).reshape(h.shape))
        up = linear(block + "up", norm(block + "norm2", h))
        h = h + linear(block + "down", np.maximum(up, 0))
    return linear("head", norm("norm", h))


def actor(path, t):
    """The step [N, S, A] -> [N, S, A] of an actor with the weights in a file, trained as t says."""
    with safe_open(path, framework="numpy") as file:
        weights = {k: file.get_tensor(k) for k in file.keys()}
        if json.loads(file.metadata()["config"]) != t:
            raise ValueError(f"{path} has the weights of another training run")
    s, a = t["sizes"][0], t["actions"]
    group = {"none": 1, "state": a}.get(t.get("attention"), s * a)  # tokens that see each other
    causal = t.get("attention") != "equivariant"  # whose tokens do not name their action either
    names = np.hstack((np.repeat(np.eye(s), a, axis=0), np.tile(np.eye(a) * causal, (s, 1))))

    def step(pi, q, eta):
        columns = [x.reshape(len(pi), -1, 1) for x in (pi, q, np.full_like(q, eta))]
        tokens = np.concatenate([np.tile(names, (len(pi), 1, 1)), *columns], axis=2)
        tokens = tokens.reshape(len(pi), -1, group, tokens.shape[-1]).astype(np.float32)
        logits = transformer(weights, tokens, t["layers"], t["heads"], causal).reshape(pi.shape)
        return softmax(logits + (np.log(pi) if t["recipe"]["readout"] == "prior" else 0))

    return step


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
        for block in sorted({x["block"] for x in records} - {"tuning", "sharpness", "sharpened"}):
            self.attempt(block, self.block, block, [x for x in records if x["block"] == block])

    def block(self, name, records):
        path = self.root / f"policies/{name}.parquet"
        policies = runs(path) if path.exists() else {}
        rows = runs(self.root / f"rows/{name}.parquet")
        for x in records:
            key = tuple(x.get(k, "" if k in ("recipe", "family") else 0) for k in KEY)
            what = f"{name}/{x['name']}"  # a key error says that it has no rows, or two records
            self.attempt(what, lambda: self.run(what, x, rows.pop(key), policies.pop(key, None)))
        self.found += [f"{name}: {key} has no record" for key in rows.keys() | policies.keys()]

    def run(self, what, record, rows, policies):
        config, f = record["config"], record["config"]["problems"]
        n, shape = f["problems"], (f["states"], f["actions"])
        problems = fixture(f["family"], f["root"], *shape, n)
        brief = record["block"] == "headline"  # losses alone, in float32
        numbers = np.arange(n)[:, None]
        rounds = [0, *config.get("tabled", range(1, config["rounds"] + 1))][brief:]
        stored = {k: v.reshape(n, -1) for k, v in rows.items() if k not in KEY}
        self.agree(f"{what}: round", stored["round"], rounds)
        self.agree(f"{what}: problem", stored["problem"], numbers)
        self.agree(f"{what}: gap", stored["gap"], np.nan if brief else problems[-1][:, None])
        controller = config.get("controller") or {}
        exact = not controller.keys() - {"actor", "phi"}  # the critic
        if "kept" in config or policies:
            kept = config["kept"]
            of = np.stack(policies["policy"]).reshape(n, len(kept), *shape)
            losses = stored["loss"][:, [rounds.index(k) for k in kept]]
            for name, again in (("round", kept), ("problem", numbers)):
                self.agree(f"{what}: {name} of policies", policies[name].reshape(n, -1), again)
            self.agree(f"{what}: sums of policies", of.sum(axis=-1), 1)
            self.agree(f"{what}: losses of policies", losses, loss(problems, of), LOOP)
        step, few, tolerance = None, 64 if brief else n, LOOP
        if "actor" in controller and exact:
            t, after = controller["actor"]["training"], controller["actor"]["step"]
            file = "weights.safetensors" if after == t["steps"] else f"weights-{after}.safetensors"
            [(name, sha)] = record["weights"].items()
            paths = list(self.root.glob(f"train/{name}-{12 * '?'}/{file}"))
            if not paths and any(fnmatch.fnmatch(f"{name}/{file}", pattern) for pattern in LEFT_OUT):
                return
            if len(paths) != 1 or digest(paths[0]) != sha:
                raise ValueError("it was made from other weights")
            step, few = actor(paths[0], t), 16 if brief else 6
            tolerance = 2e-2 if t["objective"] == "reward-only" else NETWORK  # its logits are large
        if exact:  # whoever changes a file cannot know which problems
            random = np.random.default_rng([self.seed, *what.encode()])
            some = random.permutation(n)[: n if self.whole else few]
            stored, problems = {k: v[some] for k, v in stored.items()}, [x[some] for x in problems]
            loop = config["eta"], controller.get("phi", 0), config["rounds"]
            self.loop(what, stored, problems, rounds, step, *loop, tolerance)

    def loop(self, what, stored, problems, rounds, step, eta, phi, last, tolerance):
        """Runs a closed loop with the exact critic again; without a step, that of exact PMD."""
        p, r, pi, _, gap = problems
        q, policies, again = evaluate(p, r, pi[:, None])[:, 0], [pi], []
        for _ in range(last):
            exact = pmd(pi, q, eta)
            pi = exact if step is None else (1 - phi) * step(pi, q, eta) + phi / pi.shape[-1]
            l1 = np.abs(pi - exact).sum(axis=-1)
            short = (pi * (q.max(axis=-1, keepdims=True) - q)).sum(axis=-1)
            defect = np.einsum("nsat,nt->nsa", p, short).max(axis=(1, 2))
            again.append((l1.max(axis=1), l1.mean(axis=1), defect))
            policies.append(pi)
            q = r + GAMMA * np.einsum("nsat,nt->nsa", p, (pi * q).sum(axis=-1))
        policies = np.stack([policies[k] for k in rounds], axis=1)
        self.agree(f"{what}: loss", stored["loss"], loss(problems, policies), tolerance)
        if not np.isnan(stored["zeta"]).all():  # by round
            self.agree(f"{what}: e0", stored["e0"], gap[:, None])
            self.agree(f"{what}: delta", stored["delta"][:, :-2], 0)
            for name, values in zip(("zeta", "row_l1", "defect"), np.transpose(again, (1, 2, 0))):
                self.agree(f"{what}: {name}", stored[name][:, :-1], values, tolerance)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=pathlib.Path, nargs="?", default="artifacts/paper")
    parser.add_argument("--whole", action="store_true", help="run networks on all problems")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32), help="of the choice")
    verifier = Verifier(**vars(parser.parse_args()))
    found = verifier.verify()
    print(*found, f"{verifier.numbers} numbers, seed {verifier.seed}: {len(found)} discrepancies", sep="\n")
    sys.exit(3 if found else 0)
