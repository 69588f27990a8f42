"""The problems and the methods in NumPy, written from the paper and not from the Go program.

Arrays have the axes N problems, S states, A actions; p [N, S, A, S] are transitions, r [N, S, A]
rewards, pi [N, S, A] policies. A stream of random numbers has the name that the Go program gives it.
"""

import hashlib
import json

import numpy as np

GAMMA = 0.9
WINDOW = 20  # transitions a round of those that walk


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


def backup(p, r, pi, q):
    """The action values after one backup under pi."""
    return r + GAMMA * np.einsum("nsat,nt->nsa", p, (pi * q).sum(axis=-1))


def pick(u, rows):
    """The entry of each row [..., K] that the number u [...] in [0, 1) draws."""
    return (u[..., None] >= np.cumsum(rows, axis=-1)[..., :-1]).sum(axis=-1)


def transformer(weights, h, layers, heads, sees=None):
    """Outputs [..., T, outputs] of a network for tokens [..., T, features]; sees [T, T], if not all."""

    def linear(name, x):
        y = x.reshape(-1, x.shape[-1]) @ weights[name + ".weight"] + weights[name + ".bias"]
        return y.reshape(*x.shape[:-1], -1)

    def norm(name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)
        return x * weights[name + ".gain"] + weights[name + ".bias"]

    h = linear("embed", h.astype(np.float32))
    mask = np.float32(0) if sees is None else np.where(sees, 0, -np.inf).astype(h.dtype)
    for layer in range(layers):
        block = f"blocks.{layer}."
        qkv = linear(block + "qkv", norm(block + "norm1", h))
        q, k, v = np.moveaxis(qkv.reshape(*h.shape[:-1], 3, heads, -1), (-3, -2), (0, -3))
        mixed = softmax(q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5 + mask) @ v
        h = h + linear(block + "out", np.moveaxis(mixed, -3, -2).reshape(h.shape))
        up = linear(block + "up", norm(block + "norm2", h))
        h = h + linear(block + "down", np.maximum(up, 0))
    return linear("head", norm("norm", h))


def pairs(s, a):
    """One-hots [S·A, S + A] of state and action."""
    return np.hstack((np.repeat(np.eye(s), a, axis=0), np.tile(np.eye(a), (s, 1))))


def actor(weights, t):
    """The step [N, S, A] -> [N, S, A] of an actor that was trained as t says."""
    s, a = t["sizes"][0], t["actions"]
    group = {"none": 1, "state": a}.get(t.get("attention"), s * a)  # tokens that see each other
    names, sees = pairs(s, a), np.tri(group, dtype=bool)
    if t.get("attention") == "equivariant":
        names[:, s:], sees = 0, None

    def step(pi, q, eta):
        columns = [x.reshape(len(pi), -1, 1) for x in (pi, q, np.full_like(q, eta))]
        tokens = np.concatenate([np.tile(names, (len(pi), 1, 1)), *columns], axis=2)
        tokens = tokens.reshape(len(pi), -1, group, tokens.shape[-1])
        logits = transformer(weights, tokens, t["layers"], t["heads"], sees).reshape(pi.shape)
        return softmax(logits + (np.log(pi) if t["recipe"]["readout"] == "prior" else 0))

    return step


def critic(c, p, r, root, numbers, rounds, eta, load):
    """The critic of a configuration: (round, returned pi, q) -> q, from sampled successors."""
    t = c.get("training") or c.get("memory_critic")
    weights, m, (n, s, a) = t and load(t, c.get("step")), c.get("samples") or t["samples"], r.shape
    keys = [key(root, "critic", i, k) for i in numbers for k in range(rounds)]
    draws = uniform(streams(keys, s * a * m)).reshape(n, rounds, s, a, m)
    successors = pick(draws, p[:, None, :, :, None])  # [N, T, S, A, m]
    if "memory_critic" in c:
        return Anchored(weights, r, successors, eta)

    def mean(k, pi, q):
        values = (pi * q).sum(axis=-1)
        return r + GAMMA * values[np.arange(n)[:, None, None, None], successors[:, k]].mean(axis=-1)

    def learned(k, pi, q):
        to = successors[:, k].reshape(n, -1)  # tokens are samples, and then a query for each pair
        tokens = np.zeros((n, s * a * (m + 1), 2 * s + a + 3))
        tokens[:, :, : s + a] = np.vstack((np.repeat(pairs(s, a), m, axis=0), pairs(s, a)))
        sample = tokens[:, : s * a * m]
        sample[:, :, s + a : -3] = np.eye(s)[to]
        sample[:, :, -3] = np.repeat(r.reshape(n, -1), m, axis=1)
        sample[:, :, -2] = np.take_along_axis((pi * q).sum(axis=-1), to, axis=1)
        tokens[:, s * a * m :, -1] = 1
        sees = np.tri(tokens.shape[1], dtype=bool)
        return transformer(weights, tokens, t["layers"], t["heads"], sees)[:, -s * a :].reshape(q.shape)

    return learned if t else mean


class Anchored:
    """The critic that remembers all samples, with rows p' that agree with the exact first table."""

    def __init__(self, weights, r, successors, eta):
        self.weights, self.r, self.successors, self.eta = weights, r, successors, eta
        self.counts = np.zeros((*r.shape, r.shape[1]))
        self.values = self.before = 0  # sums over rounds [N, S], and their means by the rows before

    def __call__(self, k, pi, q):
        n, s, _ = q.shape
        self.counts += np.eye(s)[self.successors[:, k]].sum(axis=-2)
        self.values = self.values + (pi * q).sum(axis=-1)
        if k == 0:
            first = (softmax(np.log(pi) - self.eta * q) * q).sum(axis=-1)  # values of pi_0
            low, size = first.min(axis=1).reshape(n, 1, 1), np.ptp(first, axis=1).reshape(n, 1, 1)
            self.anchor = (first.reshape(n, 1, 1, s) - low[..., None]) / size[..., None] - 0.5
            self.means = ((q - self.r) / GAMMA - low) / size - 0.5
        now = np.einsum("nsat,nt->nsa", tilt(self.rows(), self.anchor, self.means), self.values)
        before, self.before = self.before, now
        return self.r + GAMMA * (now - before)

    def rows(self):
        """What the network makes of the counts, [N, S, A, S]."""
        n, s, a, _ = self.counts.shape
        packets = self.counts[0, 0, 0].sum()  # of each pair
        of = s * a * packets * (packets - 1)
        agree = (self.counts * (self.counts - 1)).sum(axis=(1, 2, 3)) / of
        features = np.zeros((n, s, a, max(16, s), 7))
        features[..., :s, 0] = self.counts / packets
        features[..., :s, 1] = self.counts / (self.counts + 1)
        features[..., :s, 2] = s / (s + packets)
        features[..., :s, 3] = ((agree * s - 1) / (s - 1)).reshape(n, 1, 1, 1)
        features[..., :s, 4:] = np.log(1 + of / 2) / 10, np.log(s) / 4, 1
        outputs = transformer(self.weights, features, 2, 4)[..., :s, 0].astype(float)
        x = self.counts + np.exp(6 * np.tanh(outputs / 6))
        return x / x.sum(axis=-1, keepdims=True)


def tilt(rows, values, means):
    """Rows times exp(theta values), normalized, of these means; theta in [-60, 60], by Newton."""
    theta, low, high = np.zeros(means.shape), np.full(means.shape, -60.0), np.full(means.shape, 60.0)
    while True:
        x = softmax(np.log(rows) + theta[..., None] * values)
        off = means - (x * values).sum(axis=-1)
        if ((np.abs(off) < 1e-14) | (high - low < 1e-12)).all():
            return x
        low, high = np.where(off > 0, theta, low), np.where(off > 0, high, theta)
        variance = (x * values**2).sum(axis=-1) - (means - off) ** 2
        theta = theta + off / np.maximum(variance, 1e-300)
        theta = np.where((theta > low) & (theta < high), theta, (low + high) / 2)


def closed_loop(step, critic, p, r, pi, eta, phi, rounds):
    """Policies pi_0 ... pi_T [N, T + 1, S, A] of a loop, and q_0 ... q_{T-1} [N, T, S, A]."""
    policies, tables = [pi], [evaluate(p, r, pi[:, None])[:, 0]]
    for k in range(rounds):
        pi, q = policies[k], tables[k]
        pi = (1 - phi) * step(pi, q, eta) + phi / pi.shape[-1]
        policies.append(pi)
        tables.append(critic(k, pi, q) if critic else backup(p, r, pi, q))
    return np.stack(policies, axis=1), np.stack(tables[:-1], axis=1)


def walks(root, name, numbers, s, rounds):
    """States [N] where walks begin, and numbers [N, T, 20, 2] that draw their actions and successors."""
    x = streams([key(root, name, "chain", i) for i in numbers], 1 + 2 * WINDOW * rounds)
    return below(x[:, 0], s), uniform(x[:, 1:]).reshape(len(x), rounds, WINDOW, 2)


def follow(p, state, u, actions):
    """States [N, K + 1] of walks whose successors u [N, K] draws, for actions [N, K, S] at all states."""
    every, states = np.arange(len(p)), [state]
    to = pick(u[..., None], p[every[:, None, None], np.arange(p.shape[1]), actions])
    for k in range(u.shape[1]):
        states.append(to[every, k, states[-1]])
    return np.stack(states, axis=1)


def learner(c, p, r, pi, root, numbers, rounds, weights=None):
    """Policies [N, T + 1, S, A] of tabular actor-critic; with weights P and V, of Liang and Lai's block."""
    n, s, a = r.shape
    every, (state, u) = np.arange(n)[:, None], walks(root, "baseline", numbers, s, rounds)
    theta = (np.log(pi) if c["start"] == "initial" else np.zeros_like(pi)).reshape(n, -1)
    w, policies, grams = np.zeros((n, s)), [pi], [np.eye(s * a), np.eye(s)]
    if c.get("features") == "dense":
        keys = [key(root, "baseline", "features", i) for i in numbers]
        of_pairs, of_states = np.split(uniform(streams(keys, (s * a) ** 2 + s * s)), [(s * a) ** 2], axis=1)
        features = of_pairs.reshape(n, s * a, -1), of_states.reshape(n, s, s)
        grams = [x @ x.swapaxes(1, 2) for x in features]
    for k in range(rounds):
        now = softmax(theta.reshape(n, s, a))
        chosen = pick(u[:, k, :, None, 0], now[:, None])  # [N, 20, S]
        states = follow(p, state, u[:, k, :, 1], chosen)
        state, at, to = states[:, -1], states[:, :-1], states[:, 1:]
        action = chosen[every, np.arange(WINDOW), at]
        reward, here, there = r[every, at, action], np.eye(s)[at], np.eye(s)[to]
        score = here[..., None] * (np.eye(a)[action] - now[every, at])[:, :, None]
        score = score.reshape(n, WINDOW, -1)  # grad log pi
        if weights:
            columns = score, here, there, reward[..., None], np.zeros((n, WINDOW, s * a + s + 1))
            z = np.concatenate(columns, axis=2)
            query = np.hstack((np.zeros((n, s * a + 2 * s + 1)), theta, w, np.ones((n, 1))))
            out = np.einsum("nkd,nk->nd", z, np.einsum("nkd,nd->nk", z, query @ weights["P"].T))
            out = (out @ weights["V"].T)[:, -(s * a + s + 1) : -1] / WINDOW
        else:
            delta = reward + ((GAMMA * there - here) * w[:, None]).sum(axis=2)
            out = (delta[..., None] * np.concatenate((score, here), axis=2)).mean(axis=1)
        theta = theta + c["steps"]["alpha"] * (grams[0] @ out[:, : s * a, None])[..., 0]
        w = w + c["steps"]["beta"] * (grams[1] @ out[:, s * a :, None])[..., 0]
        policies.append(softmax(theta.reshape(n, s, a)))
    return np.stack(policies, axis=1)


def distilled(c, p, r, pi, numbers, rounds, weights, actions):
    """Policies [N, T + 1, S, A] of Algorithm Distillation, whose stream must draw the actions [N, 20 T]."""
    t, (n, s, a), every = c["training"], r.shape, np.arange(len(r))[:, None]
    state, u = walks(c["root"], "distill", numbers, s, rounds)
    u, policies = u.reshape(n, -1, 2), [pi]
    states = follow(p, state, u[..., 1], np.repeat(actions[..., None], s, axis=2))
    tokens = np.zeros((n, actions.shape[1] + 1, a + 1 + s + t["context"]))  # after each step
    tokens[:, 1:, :a], tokens[:, 1:, a] = np.eye(a)[actions], r[every, states[:, :-1], actions]
    tokens[:, :, a + 1 : a + 1 + s] = np.eye(s)[states]
    begin, room = 0, WINDOW + 1 if c.get("cleared") else t["context"]
    for k in range(rounds):
        end = WINDOW * (k + 1)
        if end + 1 - begin > room:
            begin = end + 1 - room
        size = end - begin
        asked = np.repeat(tokens[:, end : end + 1], s, axis=1)  # what follows, were it at each state
        asked[:, :, a + 1 : a + 1 + s] = np.eye(s)
        seen = np.concatenate((tokens[:, begin:end], asked), axis=1)
        seen[:, :, a + 1 + s :] = np.eye(t["context"])[np.minimum(np.arange(size + s), size)]
        sees = np.tri(size + s, dtype=bool)
        sees[size:, size:] = np.eye(s)
        rows = softmax(transformer(weights, seen, t["layers"], t["heads"], sees).astype(float))
        policies.append(rows[:, size:])
        lived, taken = rows[:, size - WINDOW : size], actions[:, end - WINDOW : end, None]
        above = np.take_along_axis(lived.cumsum(axis=2), taken, axis=2)[..., 0]
        under = above - np.take_along_axis(lived, taken, axis=2)[..., 0]
        drawn = u[:, end - WINDOW : end, 0]
        if ((drawn > above + 1e-3) | (drawn < under - 1e-3)).any():  # float32
            raise ValueError(f"an action of round {k} is not the one that was drawn")
    return np.stack(policies, axis=1)


def run(config, problems, numbers, load, actions=None):
    """Policies [N, T + 1, S, A] of a controller, and its tables [N, T, S, A], None for one without.

    Problems are p, r, pi and have these numbers; load(training, step=None) returns weights.
    """
    p, r, pi = problems
    rounds, root, c = config["rounds"], config["problems"]["root"], config.get("controller") or {}
    if "actor_critic" in c:
        return learner(c["actor_critic"], p, r, pi, root, numbers, rounds), None
    if "liang_lai" in c:
        c = c["liang_lai"]
        return learner(c, p, r, pi, c["root"], numbers, rounds, load(c["training"])), None
    if "distill" in c:
        c = c["distill"]
        return distilled(c, p, r, pi, numbers, rounds, load(c["training"]), actions), None
    step, sampled, eta = pmd, None, config["eta"]
    if "actor" in c:
        t = c["actor"]["training"]
        step = actor(load(t, c["actor"]["step"]), t)
    if "critic" in c:
        sampled = critic(c["critic"], p, r, root, numbers, rounds, eta, load)
    return closed_loop(step, sampled, p, r, pi, eta, c.get("phi", 0), rounds)
