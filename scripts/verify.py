"""Verifies the results without the Go program: NumPy, from the files alone.

    .local/python/bin/python scripts/verify.py [--artifacts DIR] [--preset PRESET] [--whole]

It computes again, and compares with the rows: the SHA-256 of every file; the problems, drawn from
their seeds, to the bit; the losses of every stored policy, by another solver; every round of exact
PMD; the closed loops of networks from their weights, on six problems each that the digest of all
files chooses, or on all; and the verdicts of CLAIMS.md. Exit status 3 if anything differs. It needs NumPy, pyarrow and safetensors.

As a module it has what else one may want: streams, draw, evaluate, optimum, pmd, transformer and actor.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys

import numpy as np
import pyarrow.parquet as pq
from safetensors import safe_open

TOLERANCE = 1e-10  # of linear solves, absolute, relative where numbers are large
ROUNDED = 1e-7  # of numbers kept in float32
NETWORK = 5e-4  # of forty rounds of a network in float32
REWARD_ONLY = 2e-2  # whose logits span 200 nats


# --- Random streams: ChaCha8 as in c2sp.org/chacha8rand, keyed by the SHA-256 of a name ---


def key(root, *path):
    name = b"".join(b"/" + (json.dumps(p) if isinstance(p, str) else str(p)).encode() for p in path)
    return hashlib.sha256(root.to_bytes(8, "little") + name).digest()


def quarter_rounds(a, b, c, d):
    for x, y, z, rotation in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x += y
        z ^= x
        z[:] = z << rotation | z >> 32 - rotation


def turned(row, i):
    return np.concatenate((row[i:], row[:i]))


def streams(keys, count):
    """The first count 64-bit outputs of each key's stream [keys, count]."""
    seed = np.frombuffer(b"".join(keys), "<u4").reshape(len(keys), 8)
    output, have = [], 0
    while have < count:
        groups = min(4, -(-(count - have) // 32))  # of four blocks; sixteen blocks have one seed
        x = np.zeros((16, len(keys), groups, 4), np.uint32)
        x[:4] = np.array([0x61707865, 0x3320646E, 0x79622D32, 0x6B206574], np.uint32)[:, None, None, None]
        x[4:12] = seed.T[:, :, None, None]
        x[12] = np.arange(4 * groups, dtype=np.uint32).reshape(groups, 4)
        start = x[4:12].copy()
        rows = [x[i : i + 4] for i in (0, 4, 8, 12)]
        for _ in range(4):
            quarter_rounds(*rows)
            shifted = [turned(row, i) for i, row in enumerate(rows)]
            quarter_rounds(*shifted)
            for i, row in enumerate(rows):
                row[:] = turned(shifted[i], -i)
        x[4:12] += start
        block = np.ascontiguousarray(x.transpose(1, 2, 0, 3)).reshape(len(keys), 64 * groups).view("<u8")
        if groups == 4:  # the last 256 bits are the next seed
            seed, block = np.ascontiguousarray(block[:, 124:]).view("<u4"), block[:, :124]
        output.append(block)
        have += block.shape[1]
    return np.concatenate(output, axis=1)[:, :count]


def uniform(x):
    return (x & np.uint64((1 << 53) - 1)).astype(np.float64) / (1 << 53)


def below(x, n):
    """Integers in [0, n), as math/rand/v2 makes them."""
    if n & (n - 1) == 0:
        return (x & np.uint64(n - 1)).astype(np.int64)
    product = (x >> np.uint64(32)) * np.uint64(n)
    if ((product & np.uint64(0xFFFFFFFF)) < (1 << 32) % n).any():
        raise NotImplementedError("a draw that was rejected, one in 2^32/n")
    return (product >> np.uint64(32)).astype(np.int64)


# --- Problems ---


def log(x):
    """The project's logarithm, bit by bit: 2 atanh(f/(2+f)) after range reduction."""
    m, e = np.frexp(x)
    small = m < 0.7071067811865476
    m, k = np.where(small, 2 * m, m), np.where(small, e - 1, e).astype(float)
    f = m - 1
    s = f / (2 + f)
    z, r = s * s, np.zeros_like(s)
    for n in range(25, 2, -2):
        r = z * (2 / n + r)
    h = 0.5 * (f * f)
    low = k * float.fromhex("0x1.a39ef35793c76p-33")
    return k * float.fromhex("0x1.62e42feep-01") - ((h - (s * (h + r) + low)) - f)


def dirichlet(x):
    """Rows of Dirichlet(1) along the last axis: normalized exponential variates."""
    rows = -log(1 - uniform(x))
    total = np.zeros(rows.shape[:-1])
    for i in range(rows.shape[-1]):
        total = total + rows[..., i]
    return rows / total[..., None]


def draw(fixtures):
    """Transitions [N, S, A, S], rewards [N, S, A] and first policies [N, S, A]."""
    family, root = fixtures["family"], fixtures["root"]
    s, a, n = fixtures["states"], fixtures["actions"], fixtures["problems"]
    x = streams([key(root, "mdp", family, s, a, i) for i in range(n)], 2 * s * a * (s + 2) + 1)
    taken = 0

    def take(count):
        nonlocal taken
        taken += count
        return x[:, taken - count : taken]

    if family == "ring":
        p, r = np.zeros((n, s, a, s)), np.zeros((n, s, a))
        for i in range(s):
            r[:, i] = np.cos(2 * np.pi * i / s) / 4
            for j in range(a):
                for to, weight in ((i + j - 1, 0.8), (i + 1, 0.1), (i - 1, 0.1)):
                    p[:, i, j, to % s] += weight
    else:
        if family == "sparse-transitions":
            p = np.zeros((n, s * a, s))
            for row in range(s * a):
                weights, order = dirichlet(take(2)), np.tile(np.arange(s), (n, 1))
                for i in range(s - 1, 0, -1):
                    j, every = below(take(1)[:, 0], i + 1), np.arange(n)
                    order[every, i], order[every, j] = order[every, j], order[every, i].copy()
                for k in range(2):
                    p[np.arange(n), row, order[:, k]] = weights[:, k]
        else:
            p = dirichlet(take(s * a * s).reshape(n, s * a, s))
        if family == "strong-mixing":
            p = 0.1 * p + 0.9 / s
        r = 2 * uniform(take(s * a)) - 1
        if family == "sparse-rewards":
            always = below(take(1)[:, 0], s * a)
            keep = uniform(take(s * a)) < 0.25
            keep[np.arange(n), always] = True
            r = np.where(keep, r, 0)
    pi = dirichlet(streams([key(root, "pi0", family, s, a, i) for i in range(n)], s * a).reshape(n, s, a))
    return p.reshape(n, s, a, s), r.reshape(n, s, a), pi


# --- Exact solutions and updates, for all problems N at once ---

GAMMA = 0.9


def backup(p, r, v):
    """r + gamma P v [N, S, A] of state values [N, S]."""
    return r + GAMMA * np.einsum("nsat,nt->nsa", p, v)


def evaluate(p, r, pi):
    """Q^pi [N, K, S, A] of policies [N, K, S, A]."""
    chain = np.einsum("nksa,nsat->nkst", pi, p)
    v = np.linalg.solve(np.eye(p.shape[1]) - GAMMA * chain, np.einsum("nksa,nsa->nks", pi, r)[..., None])[..., 0]
    return r[:, None] + GAMMA * np.einsum("nsat,nkt->nksa", p, v)


def optimum(p, r):
    """Q* [N, S, A] by policy iteration."""
    actions = np.eye(p.shape[2])
    greedy = r.argmax(axis=2)
    for _ in range(1000):
        q = evaluate(p, r, actions[greedy][:, None])[:, 0]
        best = np.where(q.max(axis=2) > np.take_along_axis(q, greedy[..., None], 2)[..., 0] + 1e-13, q.argmax(axis=2), greedy)
        if (best == greedy).all():
            return q
        greedy = best
    raise ArithmeticError("policy iteration did not end")


def softmax(z):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def pmd(pi, q, eta):
    with np.errstate(divide="ignore"):
        return softmax(np.log(pi) + eta * q)


def row_l1(x, y):
    return np.abs(x - y).sum(axis=-1)


# --- Networks ---


def transformer(weights, h, layers, heads, causal=False):
    """Outputs [..., T, outputs] of a network for tokens [..., T, features]."""

    def linear(name, x):
        y = x.reshape(-1, x.shape[-1]) @ weights[name + ".weight"]
        y += weights[name + ".bias"]
        return y.reshape(*x.shape[:-1], -1)

    def norm(name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * weights[name + ".gain"] + weights[name + ".bias"]

    h = linear("embed", h)
    dim = h.shape[-1] // heads
    mask = np.triu(np.full((h.shape[-2],) * 2, -np.inf if causal else 0), 1)
    for layer in range(layers):
        block = f"blocks.{layer}."
        split = linear(block + "qkv", norm(block + "norm1", h)).reshape(*h.shape[:-1], 3, heads, dim)
        queries, keys, values = (np.moveaxis(split[..., i, :, :], -2, -3) for i in range(3))
        mixed = softmax(queries @ np.swapaxes(keys, -1, -2) / np.sqrt(dim) + mask) @ values
        h = h + linear(block + "out", np.moveaxis(mixed, -3, -2).reshape(h.shape))
        h = h + linear(block + "down", np.maximum(linear(block + "up", norm(block + "norm2", h)), 0))
    return linear("head", norm("norm", h))


# --- Rows ---

KEY = ("method", "recipe", "s", "seed", "step", "family")


def read(path):
    """The columns of a Parquet file as arrays; lists as arrays of arrays, null as NaN."""
    table = pq.read_table(path)
    return {name: table[name].to_numpy() for name in table.column_names}


def runs(columns):
    """The rows of each run, in the file's order: its key and a slice."""
    n = len(columns["method"])
    change = np.zeros(n, bool)
    for name in KEY:
        change[1:] |= columns[name][1:] != columns[name][:-1]
    starts = [0, *np.flatnonzero(change).tolist(), n] if n else [0]
    for start, end in zip(starts, starts[1:]):
        yield {name: columns[name][start] for name in KEY}, slice(start, end)


class Verifier:
    def __init__(self, root, whole=False):
        self.root, self.whole, self.found, self.counts, self.cache = root, whole, [], {}, {}

    def fail(self, what):
        self.found.append(what)
        print(what)

    def agree(self, what, stored, again, tolerance=TOLERANCE):
        stored, again = np.asarray(stored, float), np.asarray(again, float)
        if stored.shape != again.shape:
            return self.fail(f"{what}: shape {stored.shape}, computed again {again.shape}")
        same = (stored == again) | (np.isnan(stored) & np.isnan(again))
        with np.errstate(invalid="ignore"):
            same |= np.abs(stored - again) <= tolerance * np.maximum(1, np.abs(again))
        if not same.all():
            at = tuple(int(i[0]) for i in np.nonzero(~same))
            self.fail(f"{what}: {(~same).sum()} numbers differ, the first at {at}: {stored[at]}, computed again {again[at]}")
        self.counts["numbers"] = self.counts.get("numbers", 0) + stored.size

    def files(self):
        listed = {}
        for line in (self.root / "SHA256SUMS").read_text().splitlines():
            digest, name = line.split("  ", 1)
            listed[name] = digest
        for name, digest in listed.items():
            path = self.root / name
            if not path.is_file():
                self.fail(f"{name}: it is missing")
            elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                self.fail(f"{name}: its SHA-256 is not that of SHA256SUMS")
        for path in self.root.rglob("*"):
            name = path.relative_to(self.root).as_posix()
            if path.is_file() and name not in listed and name != "SHA256SUMS" and name.split("/")[0] not in (".work", "new", "stages"):
                self.fail(f"{name}: SHA256SUMS does not list it")
        self.counts["files"] = len(listed)

    def problems(self):
        columns = read(self.root / "problems.parquet")
        groups = sorted({(f, int(s), int(a), int(root)) for f, s, a, root in zip(*(columns[k] for k in ("family", "s", "a", "root")))})
        for family, s, a, root in groups:
            rows = np.flatnonzero((columns["family"] == family) & (columns["s"] == s) & (columns["root"] == root))
            tolerance = 1e-15 if family == "ring" else 0  # whose rewards are another cosine's
            again = self.draw(family, root, s, a, len(rows))
            for name, want in zip(("p", "r", "pi0"), again):
                stored = np.stack([columns[name][i] for i in rows]).reshape(want.shape)
                self.agree(f"problems {family} S={s} root {root}: {name}", stored, want, tolerance)

    def draw(self, family, root, states, actions, problems):
        name = (family, root, states, actions, problems)
        if name not in self.cache:
            self.cache[name] = draw({"family": family, "root": root, "states": states, "actions": actions, "problems": problems})
        return self.cache[name]

    def scale(self, name):
        """Q* [N, S, A] of problems, and how far Q of the first policies is from it [N]."""
        if ("scale", *name) not in self.cache:
            p, r, pi = self.draw(*name)
            optimal = optimum(p, r)
            self.cache["scale", *name] = optimal, np.abs(optimal - evaluate(p, r, pi[:, None])[:, 0]).max(axis=(1, 2))
        return self.cache["scale", *name]

    def block(self, name, records):
        rows, policies = read(self.root / f"rows/{name}.parquet"), {}
        path = self.root / f"policies/{name}.parquet"
        if path.exists():
            stored = read(path)
            for key, at in runs(stored):
                if tuple(key.values()) in policies:
                    self.fail(f"{name}: policies of {key} twice")
                policies[tuple(key.values())] = stored, at
        left = set(policies)
        for key, at in runs(rows):
            config = records.pop((name, *(str(v) for v in key.values())), None)
            if config is None:
                self.fail(f"{name}: rows of {key}, which runs.json does not name")
                continue
            left.discard(tuple(key.values()))
            self.run(f"{name}/{'-'.join(str(v) for v in key.values())}", config, {k: v[at] for k, v in rows.items()}, policies.get(tuple(key.values())))
        for key in left:
            self.fail(f"{name}: policies of {key}, which has no rows")

    def run(self, what, config, rows, policies):
        f, n = config["problems"], config["problems"]["problems"]
        name = (f["family"], f["root"], f["states"], f["actions"], n)
        p, r, pi0 = self.draw(*name)
        tabled = [0, *config["tabled"]] if "tabled" in config else list(range(config["rounds"] + 1))
        brief = what.startswith("headline/")  # losses alone, in float32
        tabled = tabled[1:] if brief else tabled
        if len(rows["loss"]) != n * len(tabled):
            return self.fail(f"{what}: {len(rows['loss'])} rows, want {n * len(tabled)}")
        stored = {k: v.reshape(n, len(tabled)) for k, v in rows.items() if k not in KEY}
        self.agree(f"{what}: round", stored["round"], np.tile(tabled, (n, 1)))
        self.agree(f"{what}: problem", stored["problem"], np.repeat(np.arange(n)[:, None], len(tabled), axis=1))
        optimal, gap = self.scale(name)
        self.agree(f"{what}: gap", stored["gap"], np.repeat(gap[:, None] * (np.nan if brief else 1), len(tabled), axis=1))

        def losses(of, some=slice(None)):
            return np.abs(optimal[some, None] - evaluate(p[some], r[some], of)).max(axis=(2, 3)) / gap[some, None]

        if policies is not None:
            columns, at = policies
            of = np.stack(columns["policy"][at]).reshape(n, -1, f["states"], f["actions"])
            kept = columns["round"][at].reshape(n, -1)[0]
            self.agree(f"{what}: sums of policies", of.sum(axis=-1), np.ones(of.shape[:-1]))
            self.agree(f"{what}: losses of policies", stored["loss"][:, [tabled.index(k) for k in kept]], losses(of))
            self.counts["policies"] = self.counts.get("policies", 0) + of.shape[0] * of.shape[1]
        controller = config.get("controller") or {}
        if controller.keys() <= {"actor", "phi"}:
            some, tolerance, step = self.chosen(what, n, 64) if brief else slice(None), ROUNDED if brief else 1e-8, None
            if "actor" in controller:
                step = actor(self.root, controller["actor"])
                if step is None:
                    return
                some = self.chosen(what, n, 6)
                tolerance = REWARD_ONLY if controller["actor"]["training"]["objective"] == "reward-only" else NETWORK
            self.loop(what, config, [x[some] for x in (p, r, pi0)], {k: v[some] for k, v in stored.items()}, tabled, lambda of: losses(of, some), step, tolerance)

    def chosen(self, what, n, few):
        """A few problems, or all: whoever changes a file does not choose which."""
        digest = hashlib.sha256((self.root / "SHA256SUMS").read_bytes() + what.encode()).digest()
        return slice(None) if self.whole else np.sort(np.random.default_rng(list(digest)).permutation(n)[:few])

    def loop(self, what, config, problems, stored, tabled, losses, step, tolerance):
        """Runs a closed loop with the exact critic again; step is the actor, None for exact PMD."""
        p, r, pi = problems
        eta, phi = config["eta"], (config.get("controller") or {}).get("phi", 0)
        q, policies, found = evaluate(p, r, pi[:, None])[:, 0], [pi], {k: [] for k in ("zeta", "row_l1", "defect")}
        for _ in range(config["rounds"]):
            exact = pmd(pi, q, eta)
            pi = exact if step is None else (1 - phi) * step(pi, q, eta) + phi / pi.shape[-1]
            l1 = row_l1(pi, exact)
            found["zeta"].append(l1.max(axis=1))
            found["row_l1"].append(l1.mean(axis=1))
            found["defect"].append(np.einsum("nsat,nt->nsa", p, (pi * (q.max(axis=-1, keepdims=True) - q)).sum(axis=-1)).max(axis=(1, 2)))
            policies.append(pi)
            q = backup(p, r, (pi * q).sum(axis=-1))
        again = np.stack(policies, axis=1)[:, tabled]
        self.agree(f"{what}: loss", stored["loss"], losses(again), tolerance)
        if "tabled" not in config and not np.isnan(stored["zeta"]).all():
            for name, values in found.items():
                self.agree(f"{what}: {name}", stored[name][:, :-1], np.stack(values, axis=1), tolerance)
        self.counts["loops"] = self.counts.get("loops", 0) + len(p)

    def verdicts(self, document, claims):
        """Judges the claims of the document again from the numbers that it prints."""
        rules = {tuple(x[:2]): x[4] for x in (line.split("\t") for line in claims.splitlines()[1:])}
        rows = [[c.strip() for c in line.strip("|").split("|")] for line in document.splitlines() if line.count("|") == 7]
        judged = 0
        for section, sentence, paper, here, said, _ in rows[2:]:
            printed, ours, rule = numbers(paper), numbers(here), rules.pop((section, sentence), None)
            if rule is None:
                self.fail(f"claim {sentence}: it is not in {CLAIMS}")
            else:
                span = printed[1:3] if len(printed) > 2 else printed[:1] * 2 or [np.nan, np.nan]
                low, high = ours[1:3] if len(ours) == 3 else (np.nan, np.nan)
                want = verdict(rule, span, ours[0] if ours else np.nan, low, high)
                judged += 1
                if said != want:
                    self.fail(f"claim {sentence}: its verdict is {said}, its numbers say {want}")
        for _, sentence in rules:
            self.fail(f"claim {sentence}: it is not in the document")
        self.counts["verdicts"] = judged

    def verify(self):
        self.files()
        self.problems()
        records = {}
        for x in json.loads((self.root / "runs.json").read_text()):
            if "rounds" in x["config"] and "controller" in x["config"] | {"controller": 0} and x["block"] not in ("equal", "tuning"):
                key = (x["block"], *(str(x.get(k, {"method": "", "recipe": "", "family": ""}.get(k, 0))) for k in KEY))
                if key in records:
                    self.fail(f"{'/'.join(key)}: runs.json names it twice")
                records[key] = x["config"]
        for name in sorted({key[0] for key in records if (self.root / f"rows/{key[0]}.parquet").exists()}):
            if "loss" in pq.read_schema(self.root / f"rows/{name}.parquet").names:
                self.block(name, records)
        for key in records:
            if key[0] not in ("mechanism", "ablation", "calibration", "backups"):
                self.fail(f"{'/'.join(key)}: it has no rows")


CLAIMS = "policyattention/results/claims.tsv"


def verdict(rule, paper, value, low, high):
    """The verdict by the rule of a claim on the paper's interval and ours, None without one."""
    inside = low <= paper[1] and high >= paper[0]
    wide = low > 0 and high >= 2 * low
    resolved = low > 0 or high < 0
    if rule in ("agree", "lower"):
        below = "better" if rule == "lower" and high < paper[0] else "differs"
        return ("unresolved" if wide else "holds") if inside else below
    if rule == "sign":
        return "unresolved" if not resolved else "holds" if low * (paper[0] + paper[1]) > 0 else "differs"
    if rule.startswith("each<="):
        return "holds" if value <= float(rule[6:]) else "differs"
    simple = {"fitted": ("fitted", inside), "zero": ("holds", not resolved), "is": ("holds", value == paper[0])}
    if rule in simple:
        return simple[rule][0] if simple[rule][1] else "differs"
    return {"none": "no evidence", "budget": "other budget", "test": "tested"}.get(rule.split(" ")[0])


def numbers(text):
    return [float(x) for x in re.findall(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", text.replace("−", "-"))]


def actor(root, config):
    """The policy step of a trained actor [N, S, A] -> [N, S, A], None where its weights are left out."""
    t, step = config["training"], config["step"]
    name = "weights.safetensors" if step == t["steps"] else f"weights-{step}.safetensors"
    paths = [x for x in root.glob(f"train/{t['objective']}-{t['recipe']['name']}-*S*-{t['seed']}-*/{name}") if matches(x, t)]
    if not paths:
        return None
    with safe_open(paths[0], framework="numpy") as file:
        weights = {k: file.get_tensor(k).astype(float) for k in file.keys()}
    states, actions = t["sizes"][0], t["actions"]
    group = {"none": 1, "state": actions}.get(t.get("attention"), states * actions)
    names = np.concatenate((np.repeat(np.eye(states), actions, axis=0), np.tile(np.eye(actions), (states, 1))), axis=1)

    def act(pi, q, eta):
        n = len(pi)
        columns = [pi.reshape(n, -1, 1), q.reshape(n, -1, 1), np.full((n, states * actions, 1), eta)]
        tokens = np.concatenate([np.broadcast_to(names, (n, *names.shape)), *columns], axis=-1)
        tokens = tokens.reshape(n, -1, group, tokens.shape[-1])
        logits = transformer(weights, tokens, t["layers"], t["heads"], causal=True)[..., 0].reshape(pi.shape)
        return softmax(logits + (np.log(pi) if t["recipe"]["readout"] == "prior" else 0))

    return act


def matches(path, training):
    """Whether a file of weights is of a configuration."""
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["config"]) == training


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--artifacts", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "artifacts")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--whole", action="store_true", help="run the loops of networks on all problems")
    args = parser.parse_args()
    verifier = Verifier(args.artifacts / args.preset, args.whole)
    verifier.verify()
    if args.preset == "paper":
        repository = pathlib.Path(__file__).parent.parent
        verifier.verdicts((repository / "CLAIMS.md").read_text(), (repository / CLAIMS).read_text())
    print(", ".join(f"{n} {what}" for what, n in verifier.counts.items()) + f": {len(verifier.found)} discrepancies")
    sys.exit(3 if verifier.found else 0)


if __name__ == "__main__":
    main()
