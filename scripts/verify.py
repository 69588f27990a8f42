"""Verifies artifacts without the Go program: NumPy, from the files alone.

    .local/python/bin/python scripts/verify.py [--artifacts DIR] [--preset PRESET]

Seals, digests and configuration hashes; problems drawn again from their seeds, to the bit;
every stored policy scored again by another solver; medians; and the estimates of claims.json
with their bootstrap intervals, drawn from the same random streams. Numbers must agree to
1e-12, relative where they are large. Exit status 3 if anything does not.
"""

import argparse
import csv
import functools
import gzip
import hashlib
import io
import json
import pathlib
import re
import sys

import numpy as np
from safetensors import safe_open

TOLERANCE = 1e-12
WALK = 1e-8  # of policies after forty dependent rounds


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


def digest(p, r, pi):
    h = hashlib.sha256()
    for problem in zip(p, r, pi):
        for table in problem:
            h.update(np.ascontiguousarray(table, "<f8").tobytes())
    return h.hexdigest()


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


def project(x):
    """Euclidean projection of rows onto the simplex."""
    ordered = -np.sort(-x, axis=-1)
    shifts = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, x.shape[-1] + 1)
    last = (ordered > shifts).sum(axis=-1, keepdims=True) - 1
    return np.maximum(0, x - np.take_along_axis(shifts, last, -1))


def greedy(q):
    top = q == q.max(axis=-1, keepdims=True)
    return top / top.sum(axis=-1, keepdims=True)


def row_l1(x, y):
    return np.abs(x - y).sum(axis=-1)


# --- Estimates ---


@functools.cache
def resampled(runs, problems):
    """The draws of the bootstrap: runs [10000, J] and problems [10000, M]."""
    x = streams([key(1, "bootstrap", start) for start in range(0, 10_000, 500)], 500 * (runs + problems))
    x = x.reshape(10_000, runs + problems)
    return below(x[:, :runs], runs), below(x[:, runs:], problems)


@functools.cache
def resummarized(within, run, runs):
    """Summaries of a run's resamples [10000]; many estimates share a run."""
    run = np.frombuffer(run)
    return within(run[resampled(runs, len(run))[1]], axis=1)


def estimate(estimator, x, y):
    """Value and interval of samples [runs, problems]."""
    if estimator == "paired difference":  # of each problem, then as a median
        return estimate("median", x - y, None)
    if estimator == "ratio of means":
        within, estimator = np.mean, "ratio"
    else:
        within = np.median
    combine = {"median": lambda a, _: a, "difference": np.subtract, "ratio": np.divide}[estimator]
    picks, _ = resampled(*x.shape)

    def resamples(sample):
        return None if sample is None else np.stack([resummarized(within, run.tobytes(), len(x)) for run in sample], axis=1)

    per_run = combine(resamples(x), resamples(y))
    replicates = np.median(np.take_along_axis(per_run, picks, axis=1), axis=1)
    value = np.median(combine(within(x, axis=1), None if y is None else within(y, axis=1)))
    return [value, *np.quantile(replicates, [0.025, 0.975])]


# --- Artifacts ---


class Discrepancy(Exception):
    """What a file says is not so."""


def compact(text):
    """JSON without the white space between its tokens, numbers as they are written."""
    return "".join(re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"]+', text))


def seal(text):
    """The digest of a manifest with an empty seal."""
    return hashlib.sha256(re.sub(r'"seal":"[^"]*"\}$', '"seal":""}', compact(text)).encode()).hexdigest()


def member(text, name):
    """The text of a member of a manifest's object, compacted; None where it has none."""
    text = compact(text)
    level, at = 0, 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', text):
        if level == 1 and token.group() == f'"{name}"' and text[token.end()] == ":":
            at = token.end() + 1
            return text[at : at + json.JSONDecoder().raw_decode(text[at:])[1]]
        level += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.group(), 0)
    return None


def table(path):
    with gzip.open(path, "rt") as file:
        names, _, rows = file.read().partition("\n")
    rows = re.sub(r"(?<![^,\n])(?=[,\n])", "nan", rows)  # empty where there is no number
    values = np.loadtxt(io.StringIO(rows), delimiter=",", ndmin=2)
    return {name: values[:, i] for i, name in enumerate(names.split(","))}


def agree(path, what, stored, again):
    stored, again = np.asarray(stored, float), np.asarray(again, float)
    if stored.shape != again.shape:
        raise Discrepancy(f"{path}: {what} has shape {stored.shape}, computed again {again.shape}")
    with np.errstate(invalid="ignore"):
        off = np.abs(stored - again) > TOLERANCE * np.maximum(1, np.abs(again))
    off |= np.isnan(stored) != np.isnan(again)
    infinite = np.isinf(stored) | np.isinf(again)
    off |= infinite & (stored != again)
    if off.any():
        at = tuple(int(i) for i in np.argwhere(off)[0])
        raise Discrepancy(f"{path}: {what} {list(at)} is {stored[at]}, computed again it is {again[at]}")


# What a manifest holds beside the configuration: of an evaluation, or of a training run
# under the name of the method's own. The last line is of the actor for any MDP.
DESCRIPTION = {
    "name", "hash", "cell", "fixtures", "weights", "files", "omitted", "summary", "produced", "cost", "seal",
    "root", "horizons", "training_cpu_seconds", "evaluation_cpu_seconds", "backend",
}


def configured(manifest):
    """The names of the configurations in a manifest: there must be one."""
    return [name for name in manifest if name not in DESCRIPTION]


def check_manifest(folder):
    path = folder / "manifest.json"
    text = path.read_text()
    manifest = json.loads(text)
    if seal(text) != manifest["seal"]:
        raise Discrepancy(f"{path}: its seal is not its digest")
    if not folder.name.endswith("-" + manifest["hash"][:12]):
        raise Discrepancy(f"{path}: its hash is not that of the folder's name")
    if len(kind := configured(manifest)) != 1 or hashlib.sha256(member(text, kind[0]).encode()).hexdigest() != manifest["hash"]:
        raise Discrepancy(f"{path}: its hash is not that of its configuration, {kind}")
    omitted = manifest.get("omitted", {})  # weights that a copy may lack
    present = {f.name for f in folder.iterdir()}
    if present - {*omitted} != {*manifest["files"], path.name}:
        raise Discrepancy(f"{folder}: its files are not those that the manifest lists")
    for name, want in {**manifest["files"], **{n: d for n, d in omitted.items() if n in present}}.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != want:
            raise Discrepancy(f"{folder / name}: its SHA-256 is not what the manifest says")
    return manifest


def check_training(folder, config):
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "np") as file:
            if json.loads(file.metadata()["config"]) != config:
                raise Discrepancy(f"{path}: it belongs to another configuration")
            if not all(np.isfinite(file.get_tensor(name)).all() for name in file.keys()):
                raise Discrepancy(f"{path}: it holds numbers that are not finite")
    losses = table(folder / "loss.csv.gz")
    stretch = int(losses["step"][0])  # steps of which a row is the mean
    agree(folder / "loss.csv.gz", "step", losses["step"], np.append(np.arange(stretch, config["steps"], stretch), config["steps"]))
    if not np.isfinite(losses["loss"]).all():
        raise Discrepancy(f"{folder / 'loss.csv.gz'}: a loss is not finite")


def successors_of(critic, root, inputs, p):
    """The states [N, S, A, m] that a critic's samples lead to, for the inputs (problem, round)."""
    n, s, a, _ = p.shape
    u = uniform(streams([key(root, "critic", *map(int, i)) for i in inputs], s * a * critic["samples"])).reshape(n, s, a, -1)
    successors = np.zeros(u.shape, int)  # by inversion, subtracting as the program does
    for to in range(s - 1):
        u, passed = u - p[..., to, None], u >= p[..., to, None]
        successors += passed & (successors == to)
    return successors


def sample_mean(critic, root, inputs, p, r, pi, q):
    """What a critic without a network returns for the inputs (problem, round)."""
    successors = successors_of(critic, root, inputs, p)
    v = (pi * q).sum(axis=-1)
    mean = v[np.arange(len(p))[:, None, None, None], successors].mean(axis=-1)
    return r + GAMMA * (critic["weight"] * mean + (1 - critic["weight"]) * v.mean(axis=-1)[:, None, None])


def transformer(weights, h, layers, heads):
    """Outputs [..., T, outputs] of a network without a causal mask for tokens [..., T, features]."""

    def linear(name, x):
        y = x.reshape(-1, x.shape[-1]) @ weights[name + ".weight"]
        y += weights[name + ".bias"]
        return y.reshape(*x.shape[:-1], -1)

    def norm(name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * weights[name + ".gain"] + weights[name + ".bias"]

    h = linear("embed", h)
    dim = h.shape[-1] // heads
    for layer in range(layers):
        block = f"blocks.{layer}."
        split = linear(block + "qkv", norm(block + "norm1", h)).reshape(*h.shape[:-1], 3, heads, dim)
        queries, keys, values = (np.moveaxis(split[..., i, :, :], -2, -3) for i in range(3))
        mixed = softmax(queries @ np.swapaxes(keys, -1, -2) / np.sqrt(dim)) @ values
        h = h + linear(block + "out", np.moveaxis(mixed, -3, -2).reshape(h.shape))
        h = h + linear(block + "down", np.maximum(linear(block + "up", norm(block + "norm2", h)), 0))
    return linear("head", norm("norm", h))


class Memory:
    """The critics of policyattention/anymdp/critic: counts of all rounds so far."""

    def __init__(self, critic, folder):
        self.critic, self.counts, self.sum, self.said, self.anchor = critic, 0, 0, 0, None
        if "memory_critic" in critic:
            (path,) = folder.parent.parent.glob(f"train/memory-critic-{critic['memory_critic']['seed']}-*/weights.safetensors")
            with safe_open(path, "numpy") as f:
                if json.loads(f.metadata()["config"]) != critic["memory_critic"]:
                    raise Discrepancy(f"{path}: it belongs to another configuration")
                self.weights = {name: f.get_tensor(name).astype(np.float64) for name in f.keys()}

    def rows(self):
        """Estimates of P [N, S, A, S]."""
        n, (problems, s, a, _) = self.counts, self.counts.shape
        if "alpha" in self.critic:
            n = n + self.critic["alpha"]
            return n / n.sum(axis=-1, keepdims=True)
        total = n[0, 0, 0].sum()
        evidence = s * a * total * (total - 1)
        agree = (n * (n - 1)).sum(axis=(1, 2, 3)) / evidence if evidence else None
        rho = np.full(problems, 0.5) if agree is None else (agree * s - 1) / (s - 1)
        tokens = np.zeros((problems, s, a, max(16, s), 7))
        for k, feature in enumerate((n / total, n / (n + 1), s / (s + total), rho[:, None, None, None], np.log(1 + evidence / 2) / 10, np.log(s) / 4, 1)):
            tokens[..., :s, k] = feature
        n = n + np.exp(6 * np.tanh(transformer(self.weights, tokens, 2, 4)[..., :s, 0] / 6))
        return n / n.sum(axis=-1, keepdims=True)

    def anchored(self, rows):
        """The nearest rows whose mean of v_0 is what the first table says, where that is round 0's."""
        first, values, means = self.anchor
        low, high = np.full(means.shape, -60.0), np.full(means.shape, 60.0)
        for _ in range(70):
            theta = (low + high) / 2
            tilted = rows * np.exp(theta[..., None] * values[:, None, None, :])
            tilted /= tilted.sum(axis=-1, keepdims=True)
            short = (tilted * values[:, None, None, :]).sum(axis=-1) < means
            low, high = np.where(short, theta, low), np.where(short, high, theta)
        return np.where(first[:, None, None, None], tilted, rows)

    def backup(self, root, inputs, p, r, pi, q, eta):
        """What the critic returns for the inputs (problem, round)."""
        inputs = list(inputs)
        if self.critic.get("anchored") and self.anchor is None:
            with np.errstate(divide="ignore"):
                v = (softmax(np.log(pi) - eta * q) * q).sum(axis=-1)
            least, span = v.min(axis=-1), np.ptp(v, axis=-1)
            means = ((q - r) / GAMMA - least[:, None, None]) / span[:, None, None] - 0.5
            self.anchor = np.array([k == 0 for _, k in inputs]), (v - least[:, None]) / span[:, None] - 0.5, means
        successors = successors_of(self.critic, root, inputs, p)
        self.counts = self.counts + (successors[..., None] == np.arange(p.shape[1])).sum(axis=-2)
        v = (pi * q).sum(axis=-1)
        rows = self.rows() if self.anchor is None else self.anchored(self.rows())
        if not self.critic.get("corrected", True):
            return r + GAMMA * np.einsum("nsat,nt->nsa", rows, v)
        self.sum = self.sum + v
        said, self.said = self.said, np.einsum("nsat,nt->nsa", rows, self.sum)
        return r + GAMMA * (self.said - said)


def remembers(critic):
    return "alpha" in critic or "memory_critic" in critic


def again_from_samples(config, root, problems, folder):
    """The policies of all rounds [N, T+1, S, A] of exact PMD with such a critic."""
    p, r, pi = problems
    q, policies = evaluate(p, r, pi[:, None])[:, 0], [pi]
    memory = Memory(config["critic"], folder) if remembers(config["critic"]) else None
    for k in range(config["rounds"]):
        policies.append(pmd(policies[-1], q, config["eta"]))
        inputs = [(i, k) for i in range(len(p))]
        if memory:
            q = memory.backup(root, inputs, p, r, policies[-1], q, config["eta"])
        else:
            q = sample_mean(config["critic"], root, inputs, p, r, policies[-1], q)
    return np.stack(policies, axis=1)


def exact_pmd(config, problems):
    """The policies of all rounds [N, T+1, S, A] of exact PMD."""
    p, r, pi = problems
    q, policies = evaluate(p, r, pi[:, None])[:, 0], [pi]
    for _ in range(config["rounds"]):
        policies.append(pmd(policies[-1], q, config["eta"]))
        q = backup(p, r, (policies[-1] * q).sum(axis=-1))
    return np.stack(policies, axis=1)


def check_loop(folder, manifest, problems):
    """Scores every policy again; the number of policies."""
    config, path = manifest["evaluation"]["loop"], folder / "policies.npz"
    p, r, pi0 = problems
    arrays, rounds, eta = np.load(path), config["rounds"], config["eta"]
    kept = config.get("kept", list(range(rounds + 1)))
    fewer = len(arrays["rounds"]) < len(kept)
    if fewer:
        kept = [20, 40]  # the tables' rounds; the others take the network
    agree(path, "rounds", arrays["rounds"], kept)
    policies = arrays["policies"]
    agree(path, "sums of rows", policies.sum(axis=-1), np.ones(policies.shape[:-1]))
    csv_path = folder / "rounds.csv.gz"
    tabled = [0, *config["tabled"]] if "tabled" in config else list(range(rounds + 1))
    stored = {name: v.reshape(len(p), len(tabled)) for name, v in table(csv_path).items()}
    agree(csv_path, "round", stored["round"], np.tile(tabled, (len(p), 1)))
    optimal = optimum(p, r)
    tables = not np.isnan(stored["zeta"]).all()  # a method without critic tables has losses only
    gap = np.abs(optimal - evaluate(p, r, pi0[:, None])[:, 0]).max(axis=(1, 2))[:, None]
    agree(csv_path, "gap", stored["gap"], np.repeat(gap, len(tabled), axis=1))
    for horizon in config.get("tabled", (20, 40)):
        summary = manifest["summary"][f"T{horizon}"]
        agree(folder / "manifest.json", f"median loss at {horizon}", summary["median_loss"], np.median(stored["loss"][:, tabled.index(horizon)]))
        if tables and "tabled" not in config:
            again = np.median(stored["row_l1"][:, :horizon].mean(axis=1))
            agree(folder / "manifest.json", f"median row-L1 to {horizon}", summary["median_row_l1"], again)
    critic = config.get("critic", {})
    if "actor" not in config and ("weight" in critic or remembers(critic)):
        few = slice(0, 8 if "memory_critic" in critic else None)  # a network takes its time
        again = again_from_samples(config, manifest["evaluation"]["fixtures"]["root"], [x[few] for x in problems], folder)
        # The stored ones are float32 networks'.
        if not np.allclose(policies[few], again[:, kept], rtol=0, atol=1e-3 if "memory_critic" in critic else WALK):
            raise Discrepancy(f"{path}: policies are not those of exact PMD with this critic")
    if "tabled" in config and not {"actor", "critic"} & {*config}:
        again = exact_pmd(config, problems)
        if not np.allclose(policies, again[:, kept], rtol=0, atol=WALK):
            raise Discrepancy(f"{path}: policies are not those of exact PMD")
        distance = np.abs(optimal[:, None] - evaluate(p, r, again[:, tabled])).max(axis=(2, 3))
        if not np.allclose(stored["loss"], distance / gap, rtol=0, atol=WALK):
            raise Discrepancy(f"{csv_path}: losses are not those of exact PMD")
    if fewer or "tabled" in config:
        distance = np.abs(optimal[:, None] - evaluate(p, r, policies)).max(axis=(2, 3))
        agree(csv_path, "loss", stored["loss"][:, [tabled.index(k) for k in kept]], distance / gap)
        return policies.shape[0] * policies.shape[1]
    if kept != list(range(rounds + 1)):  # exact PMD, whose other rounds follow
        again = exact_pmd(config, problems)
        agree(path, "policies", policies, again[:, kept])
        again[:, kept] = policies
        policies = again
    agree(path, "first policies", policies[:, 0], pi0)
    distance = np.abs(optimal[:, None] - evaluate(p, r, policies)).max(axis=(2, 3))
    agree(csv_path, "loss", stored["loss"], distance / gap)
    if tables:
        q = [evaluate(p, r, pi0[:, None])[:, 0]]
        for k in range(1, rounds):
            q.append(arrays["q"][:, k] if "q" in arrays else backup(p, r, (policies[:, k] * q[-1]).sum(axis=-1)))
        agree(csv_path, "e0", stored["e0"][:, 0], np.abs(optimal - q[0]).max(axis=(1, 2)))
        for k in range(rounds):
            l1 = row_l1(policies[:, k + 1], pmd(policies[:, k], q[k], eta))
            defect = (policies[:, k + 1] * (q[k].max(axis=-1, keepdims=True) - q[k])).sum(axis=-1)
            agree(csv_path, f"round {k}, zeta", stored["zeta"][:, k], l1.max(axis=1))
            agree(csv_path, f"round {k}, row_l1", stored["row_l1"][:, k], l1.mean(axis=1))
            agree(csv_path, f"round {k}, defect", stored["defect"][:, k], np.einsum("nsat,nt->nsa", p, defect).max(axis=(1, 2)))
            if k + 1 < rounds:
                exact = backup(p, r, (policies[:, k + 1] * q[k]).sum(axis=-1))
                agree(csv_path, f"round {k}, delta", stored["delta"][:, k], np.abs(q[k + 1] - exact).max(axis=(1, 2)))
    return policies.shape[0] * policies.shape[1]


def contexts(fixtures, problems, inputs):
    """(pi, Q, eta, rounds) of one-step inputs: exact PMD runs, stopped at random."""
    p, r, pi = problems
    x = streams([key(fixtures["root"], "one-step", i) for i in range(len(p))], 2)
    rounds = below(x[:, 0], inputs["rounds"] + 1)
    eta = (inputs["eta_min"] + (inputs["eta_max"] - inputs["eta_min"]) * uniform(x[:, 1]))[:, None, None]
    q = evaluate(p, r, pi[:, None])[:, 0]
    for k in range(inputs["rounds"]):
        going = (rounds > k)[:, None, None]
        pi = np.where(going, pmd(pi, q, eta), pi)
        q = np.where(going, backup(p, r, (pi * q).sum(axis=-1)), q)
    return pi, q, eta, rounds


def check_one_step(folder, manifest, problems):
    inputs, arrays = manifest["evaluation"]["one_step"], np.load(folder / "policies.npz")
    pi, q, eta, rounds = contexts(manifest["evaluation"]["fixtures"], problems, inputs)
    path = folder / "distances.csv.gz"
    stored = table(path)
    agree(path, "round", stored["round"], rounds)
    agree(path, "eta", stored["eta"], eta[:, 0, 0])
    rules = {
        "pmd": pmd(pi, q, eta), "additive-projected": project(pi + eta * q), "identity": pi,
        "boltzmann-q": softmax(eta * q), "reward-only": greedy(q),
    }
    for name, target in rules.items():
        distances = row_l1(arrays["next"][0], target).mean(axis=1)
        agree(path, name, stored[name], distances)
        agree(folder / "manifest.json", name, manifest["summary"]["mean_row_l1"][name], distances.mean())
    path = folder / "steps.csv.gz"
    steps = table(path)
    grid = inputs["fit_lo"] + np.arange(int((inputs["fit_hi"] - inputs["fit_lo"]) / inputs["fit_by"] + 1.5)) * inputs["fit_by"]
    targets = np.stack([pmd(pi, q, candidate) for candidate in grid])
    misfit = np.stack([row_l1(given, targets).mean(axis=(1, 2)) for given in arrays["supplied"]])
    agree(path, "fitted", steps["fitted"], grid[misfit.argmin(axis=1)])
    agree(path, "row_l1", steps["row_l1"], misfit.min(axis=1))
    return len(pi) * (1 + len(steps["fitted"]))


def check_backup(folder, manifest, problems):
    p, r, _ = problems
    pi, q, eta, rounds = contexts(manifest["evaluation"]["fixtures"], problems, manifest["evaluation"]["backup"])
    exact = backup(p, r, (pmd(pi, q, eta) * q).sum(axis=-1))
    values, law = np.load(folder / "policies.npz")["values"][0], manifest["evaluation"]["backup"]
    if "weight" in law["critic"]:
        root = manifest["evaluation"]["fixtures"]["root"]
        again = sample_mean(law["critic"], root, enumerate(rounds), p, r, pmd(pi, q, eta), q)
        agree(folder / "policies.npz", "values", values, again)
    if remembers(law["critic"]):
        root = manifest["evaluation"]["fixtures"]["root"]
        again = Memory(law["critic"], folder).backup(root, enumerate(rounds), p, r, pmd(pi, q, eta), q, eta)
        if not np.allclose(values, again, rtol=0, atol=1e-4 if "memory_critic" in law["critic"] else WALK):
            raise Discrepancy(f"{folder / 'policies.npz'}: values are not those of this critic")
    error = np.abs(values - exact)
    path = folder / "backups.csv.gz"
    stored = table(path)
    agree(path, "round", stored["round"], rounds)
    agree(path, "mae", stored["mae"], error.mean(axis=(1, 2)))
    agree(path, "largest", stored["largest"], error.max(axis=(1, 2)))
    agree(folder / "manifest.json", "mae", manifest["summary"]["backup"]["mae"], error.mean())
    return len(pi)


def check_along(folder, manifest, problems):
    """Scores the stored policies of the first problems after each step of training; their number."""
    config, path = manifest["evaluation"]["along"], folder / "losses.csv.gz"
    p, r, pi0 = problems
    steps, horizons, few = config["steps"], config["horizons"], config["policies"]
    stored = {name: v.reshape(len(steps), -1) for name, v in table(path).items()}
    agree(path, "step", stored["step"], np.repeat(np.array(steps)[:, None], len(p), axis=1))
    agree(path, "problem", stored["problem"], np.tile(np.arange(len(p)), (len(steps), 1)))
    losses = np.stack([stored[f"loss_{k}"] for k in horizons], axis=2)
    for step, row in zip(steps, losses):
        summary = manifest["summary"][f"step{step}"]
        again = np.median(row, axis=0)
        agree(folder / "manifest.json", f"median losses after {step} steps", [summary[f"median_loss_T{k}"] for k in horizons], again)
    path, arrays = folder / "policies.npz", np.load(folder / "policies.npz")
    policies = arrays["policies"].reshape(len(steps), few, len(horizons), *pi0.shape[1:])
    agree(path, "sums of rows", policies.sum(axis=-1), np.ones(policies.shape[:-1]))
    optimal = optimum(p, r)[:few]
    gap = np.abs(optimal - evaluate(p, r, pi0[:, None])[:few, 0]).max(axis=(1, 2))[:, None]
    for i, step in enumerate(steps):
        distance = np.abs(optimal[:, None] - evaluate(p[:few], r[:few], policies[i])).max(axis=(2, 3))
        agree(folder / "losses.csv.gz", f"losses after {step} steps", losses[i, :few], distance / gap)
    return len(steps) * few * len(horizons)


CHECKS = {"loop": check_loop, "one_step": check_one_step, "backup": check_backup, "along": check_along}


@functools.cache
def problems_of(family, root, states, actions, problems):
    return draw(dict(family=family, root=root, states=states, actions=actions, problems=problems))


# --- The actor for any MDP ---


def any_logits(weights, pi, q, eta, prior):
    """Logits [..., A] of policyattention/anymdp for rows of a policy and of Q [..., A]."""
    with np.errstate(divide="ignore"):
        log = np.log(pi)
    x = eta * (q - q.mean(axis=-1, keepdims=True))
    mass = np.maximum(log - log.max(axis=-1, keepdims=True), -16)
    d = np.abs(x).max(axis=-1, keepdims=True)
    s = d - mass
    h = np.stack([x / d / 100, mass / s / 100, x / s / 100, np.ones_like(x)], axis=-1)
    o = 100 * transformer(weights, h, 4, 4)
    return log + d * o[..., 1] if prior else s * o[..., 0]


def check_any(folder):
    """Checks digests, and runs ten problems of two rows again in 40 rounds; the number of losses compared."""
    manifest = check_manifest(folder)
    with safe_open(folder / "weights.safetensors", "numpy") as f:
        weights = {name: f.get_tensor(name).astype(np.float64) for name in f.keys()}
    with gzip.open(folder / "losses.csv.gz", "rt") as f:
        lines = list(csv.DictReader(f))
    compared = 0
    for row, family in (("γ = 0.9", "random"), ("sparse-rewards", "sparse-rewards")):
        stored = [line for line in lines if line["row"] == row][:10]
        stream = hashlib.sha256(manifest["root"].to_bytes(8, "little") + "/\"any\"/\"trial\"/\"{}\"/{}".format(row, manifest["config"]["seed"]).encode())
        root = int(streams([stream.digest()], 1)[0, 0])
        p, r, pi0 = draw({"family": family, "root": root, "states": 7, "actions": 3, "problems": 10})
        best = optimum(p, r)
        gap = np.abs(best - evaluate(p, r, pi0[:, None])[:, 0]).max(axis=(1, 2))
        for of in ("exact", "prior", "network"):
            pi, q = pi0, evaluate(p, r, pi0[:, None])[:, 0]
            for k in range(1, 41):
                pi = pmd(pi, q, 0.8) if of == "exact" else softmax(any_logits(weights, pi, q, 0.8, of == "prior"))
                if k in (20, 40):
                    loss = np.abs(best - evaluate(p, r, pi[:, None])[:, 0]).max(axis=(1, 2)) / gap
                    want = np.array([float(line[f"exact_{k}"]) for line in stored])
                    if of != "exact":
                        want = want + [float(line[f"{of}_excess_{k}"]) for line in stored]
                    # The stored ones are float32 networks' and have six digits.
                    if not np.abs(loss - want).max() <= (1e-6 if of == "exact" else 1e-3):
                        raise Discrepancy(f"{folder}: {row}: {of} after {k} rounds: losses differ by {np.abs(loss - want).max():.2g}")
                    compared += len(want)
                q = backup(p, r, (pi * q).sum(axis=2))
    return compared


# --- Equal information ---


def planned(p, r, pi0, row):
    """Policies [rounds + 1] of a method with the model, after the named number of rounds."""
    eta, uniform = (row["values"] if "values" in row else (0, 0))
    pi = np.full_like(pi0, 1 / pi0.shape[2]) if uniform else pi0
    q, policies = evaluate(p, r, pi[:, None])[:, 0], [pi]
    while len(policies) <= 40:
        pi = greedy(q) if row["method"] in ("value-iteration", "policy-iteration") else pmd(pi, q, eta)
        policies.append(pi)
        if row["method"] == "value-iteration":
            q = backup(p, r, q.max(axis=-1))
        elif row["method"] == "exact-pmd":
            q = backup(p, r, (pi * q).sum(axis=-1))
        else:
            q = evaluate(p, r, pi[:, None])[:, 0]
    return policies


def certain(p, r, row, root, horizons):
    """Plans of certainty equivalence in the frequencies of generative samples."""
    n, s, a, _ = p.shape
    pairs, per, more = s * a, row["n"] // (s * a), row["n"] % (s * a)
    counts, policies, every = np.zeros((n, pairs, s)), {}, np.arange(n)
    for k in range(max(horizons)):
        u = uniform(streams([key(root, "critic", i, k) for i in range(n)], row["n"]))
        turns = (np.arange(pairs) - k * more) % pairs < more
        for draw_, pair in zip(u.T, np.repeat(np.arange(pairs), per + turns)):
            row_, rest, chosen = p.reshape(n, pairs, s)[:, pair], draw_.copy(), np.full(n, -1)
            for t in range(s):  # by inversion, as the project draws
                chosen = np.where((chosen < 0) & (rest < row_[:, t]), t, chosen)
                rest = rest - row_[:, t]
            chosen = np.where(chosen < 0, s - 1, chosen)
            counts[every, pair, chosen] += 1
        if k + 1 in horizons:
            seen = counts.sum(axis=2)
            stay = np.repeat(np.eye(s), a, axis=0)[None]
            model = np.where(seen[..., None] > 0, counts / np.maximum(seen, 1)[..., None], stay).reshape(p.shape)
            known = seen.reshape(r.shape) > 0
            best = np.where(known, r, -np.inf).max(axis=(1, 2))[:, None, None]
            policies[k + 1] = greedy(optimum(model, np.where(known, r, best)))
    return policies


def check_equal(folder):
    """Runs methods with the model, and certainty equivalence, again; the number of losses compared."""
    evidence, path = json.loads((folder / "evidence.json").read_text()), folder / "losses.csv.gz"
    if hashlib.sha256(path.read_bytes()).hexdigest() != evidence["losses"]:
        raise Discrepancy(f"{path}: its SHA-256 is not what the evidence says")
    stored, horizons, compared = table(path), evidence["horizons"], 0
    for i, row in enumerate(evidence["rows"]):
        model = row["information"] == "model" and row["method"] in ("exact-pmd", "natural-gradient", "value-iteration", "policy-iteration")
        sampled = row["information"] == "generative" and row["method"] == "certainty-equivalence" and row["n"] <= 48
        if not model and not sampled:
            continue
        roots = evidence["roots"][str(row["states"])]
        p, r, pi0 = problems_of("random", roots["evaluation"], row["states"], 3, evidence["problems"])
        policies = planned(p, r, pi0, row) if model else certain(p, r, row, roots["samples"], horizons)
        best = optimum(p, r)
        gap = np.abs(best - evaluate(p, r, pi0[:, None])[:, 0]).max(axis=(1, 2))
        ours = (stored["row"] == i) & (stored["run"] == 0)
        for t in horizons:
            if sampled and t * row["n"] < p.shape[1] * p.shape[2]:
                continue  # plans are not unique: pairs that have not been seen look alike
            loss = np.abs(best - evaluate(p, r, policies[t][:, None])[:, 0]).max(axis=(1, 2)) / gap
            want = stored[f"loss_{t}"][ours]
            if not (np.abs(loss - want) <= 1e-4 * want + 1e-9).all():  # five digits are stored
                at = int(np.argmax(np.abs(loss - want)))
                raise Discrepancy(f"{path}: row {i}, {row['method']}, problem {at} after {t} rounds: {want[at]}, computed again {loss[at]}")
            compared += len(want)
    return compared


def check_folder(folder):
    """Checks an artifact; the number of policies and tables that were scored again."""
    if folder.parent.name == "any":
        return check_any(folder)
    manifest = check_manifest(folder)
    if "evaluation" not in manifest:
        check_training(folder, manifest[configured(manifest)[0]])
        return 0
    config = manifest["evaluation"]
    for kind, check in CHECKS.items():
        if kind in config:
            problems = problems_of(**config["fixtures"])
            # The ring's cosine is another library's here; its policies are scored all the same.
            if config["fixtures"]["family"] != "ring" and digest(*problems) != manifest["fixtures"]:
                raise Discrepancy(f"{folder / 'manifest.json'}: the problems drawn again have another digest")
            return check(folder, manifest, problems)
    return 0


def check_claims(path):
    """Makes the estimates of the claims again; what is wrong, and how many were made."""
    root = path.parent

    rounds = functools.cache(lambda name: table(root / name / "rounds.csv.gz"))

    def sample(folders, horizon):
        return np.array([rounds(name)["loss"][rounds(name)["round"] == horizon] for name in folders])

    claims, found, made = json.loads(path.read_text()), [], 0
    for name, want in claims.get("Results", {}).items():
        manifest = root / name / "manifest.json"
        if not manifest.exists():
            found.append(f"{path}: it was made with {name}, which is missing")
        elif json.loads(manifest.read_text())["seal"] != want:
            found.append(f"{path}: it was made with another result {name}")
    for e in claims.get("Evidence", []):
        try:
            y = sample(e["y"], e["horizon"]) if e.get("y") else None
            again = estimate(e["estimator"], sample(e["x"], e["horizon"]), y)
            agree(path, e["of"], [e["value"], e["lo"], e["hi"]], again)
            made += 1
        except (Discrepancy, OSError, ValueError) as error:
            found.append(f"{path}: {e['of']}: {error}")
    return found, made


def verify(root):
    """All discrepancies of a preset's artifacts, and what was looked at."""
    found, folders, scored, estimates = [], 0, 0, 0
    for manifest in sorted(root.glob("[!.]*/*/manifest.json")):
        folders += 1
        try:
            scored += check_folder(manifest.parent)
        except Discrepancy as discrepancy:
            found.append(str(discrepancy))
        except (OSError, EOFError, KeyError, ValueError, ArithmeticError, NotImplementedError) as error:
            found.append(f"{manifest.parent}: {type(error).__name__}: {error}")
    rooms = {root / "equal": check_equal}
    for room, check in rooms.items():
        if not room.exists():
            continue
        folders += 1
        try:
            scored += check(room)
        except Discrepancy as discrepancy:
            found.append(str(discrepancy))
        except (OSError, EOFError, KeyError, ValueError, ArithmeticError, NotImplementedError) as error:
            found.append(f"{room}: {type(error).__name__}: {error}")
    claims = root / "claims.json"
    if root.name == "paper" and not claims.exists():
        found.append(f"{claims}: is missing")
    if claims.exists():
        try:
            wrong, estimates = check_claims(claims)
            found += wrong
        except (OSError, KeyError, ValueError) as error:
            found.append(f"{claims}: {type(error).__name__}: {error}")
    return found, f"{folders} folders, {scored} policies and tables scored again, {estimates} estimates made again"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--artifacts", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "artifacts")
    parser.add_argument("--preset", default="paper")
    arguments = parser.parse_args()
    root = arguments.artifacts / arguments.preset
    if not root.is_dir():
        parser.error(f"there is no {root}")
    found, looked = verify(root)
    print("\n".join([*found, f"preset {arguments.preset}: {looked}: {len(found)} discrepancies"]))
    sys.exit(3 if found else 0)


if __name__ == "__main__":
    main()
