"""Writes the transition table of a Gymnasium toy-text environment as an MDP file.

    .local/python/bin/python scripts/gymnasium_export.py FrozenLake-v1 --out lake.json
    .local/python/bin/python scripts/gymnasium_export.py FrozenLake-v1 --map 8x8 --out lake.npz
    .local/python/bin/python scripts/gymnasium_export.py Taxi-v4 --gamma 0.99 --out taxi.json

The file holds {"gamma": g, "P": [S][A][S], "r": [S][A]}; with a name that ends in .npz, the
same three as arrays. r is the expected reward, r[s][a] = sum over s' of p(s'|s,a) r(s,a,s').

An episode's end becomes an absorbing state with reward zero. A state that is never left but
by the end of an episode (FrozenLake's holes and goal, CliffWalking's goal) is made absorbing
itself. Where an episode ends in a state that can also be passed through (Taxi's drop-off),
one more state, the last, stands for the end.
"""

import argparse
import json
import os
import sys
import warnings

import gymnasium
import numpy as np


def table(env_id, **options):
    """Returns P [S, A, S] and r [S, A] of an environment that has a transition table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions of an environment, which the caller chose
        environment = gymnasium.make(env_id, **options).unwrapped
    transitions = getattr(environment, "P", None)
    if transitions is None:
        raise ValueError(f"{env_id} has no transition table: only toy-text environments do")
    return convert(transitions)


def convert(transitions):
    """Turns Gymnasium's {s: {a: [(p, s', reward, terminated)]}} into P [S, A, S] and r [S, A]."""
    states = len(transitions)
    actions = len(transitions[0])
    # A state is absorbing where episodes end and where whoever enters it has ended.
    ends = {t[1] for row in transitions.values() for ts in row.values() for t in ts if t[3]}
    absorbing = {s for s in ends if stays_at_end(s, transitions)}
    end = states if ends - absorbing else None

    total = states + (end is not None)
    p = np.zeros((total, actions, total))
    r = np.zeros((total, actions))
    for s in range(states):
        for a in range(actions):
            if s in absorbing:
                p[s, a, s] = 1
                continue
            for probability, successor, reward, terminated in transitions[s][a]:
                if terminated and successor not in absorbing:
                    successor = end
                p[s, a, successor] += probability
                r[s, a] += probability * reward
    if end is not None:
        p[end, :, end] = 1
    sums = p.sum(axis=2, keepdims=True)
    if not np.allclose(sums, 1, rtol=0, atol=1e-9):
        raise ValueError("the table's probabilities do not sum to 1")
    return p / sums, r


def stays_at_end(state, transitions):
    """Whether an episode that ended in state can never be one that goes on through it."""
    entered_alive = any(
        t[1] == state and not t[3] and s != state
        for s, row in transitions.items() for ts in row.values() for t in ts
    )
    return not entered_alive


def optimal_q(gamma, p, r, iterations=10_000):
    """Q* [S, A] by policy iteration with NumPy's solver: independent of the Go code."""
    states = len(r)
    policy = np.zeros(states, int)
    for _ in range(iterations):
        v = np.linalg.solve(
            np.eye(states) - gamma * p[np.arange(states), policy], r[np.arange(states), policy]
        )
        q = r + gamma * p @ v
        better = q.max(axis=1) > q[np.arange(states), policy] + 1e-12
        if not better.any():
            return q
        policy = np.where(better, q.argmax(axis=1), policy)
    raise RuntimeError(f"policy iteration did not end within {iterations} iterations")


def replace(path, save):
    """Has a file written under a temporary name, then renames it."""
    new = f"{path}.tmp"
    with open(new, "wb") as file:
        save(file)
    os.replace(new, path)


def write(path, gamma, p, r):
    """Writes an MDP file."""
    if path.endswith(".npz"):
        replace(path, lambda file: np.savez_compressed(file, gamma=np.float64(gamma), P=p, r=r))
    else:
        mdp = {"gamma": gamma, "P": p.tolist(), "r": r.tolist()}
        replace(path, lambda file: file.write(json.dumps(mdp, separators=(",", ":")).encode() + b"\n"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", help="e.g. FrozenLake-v1, CliffWalking-v1, Taxi-v4")
    parser.add_argument("--map", choices=["4x4", "8x8"], help="FrozenLake's map")
    parser.add_argument("--gamma", type=float, default=0.9, help="discount in [0, 1), default 0.9")
    parser.add_argument("--out", required=True, help="file to write, .json or .npz")
    parser.add_argument("--q-star", metavar="FILE", help="also write Q* [S][A], by NumPy, as JSON")
    arguments = parser.parse_args()
    if not 0 <= arguments.gamma < 1:
        parser.error(f"gamma is {arguments.gamma}, want 0 <= gamma < 1")
    if not arguments.out.endswith((".json", ".npz")):
        parser.error(f"{arguments.out}: want a name that ends in .json or .npz")
    options = {"map_name": arguments.map} if arguments.map else {}
    try:
        p, r = table(arguments.environment, **options)
    except (ValueError, gymnasium.error.Error, TypeError) as error:
        sys.exit(f"gymnasium_export: {error}")
    try:
        write(arguments.out, arguments.gamma, p, r)
        if arguments.q_star:
            q = json.dumps(optimal_q(arguments.gamma, p, r).tolist())
            replace(arguments.q_star, lambda file: file.write(q.encode()))
    except OSError as error:
        sys.exit(f"gymnasium_export: {error}")


if __name__ == "__main__":
    main()
