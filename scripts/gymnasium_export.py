"""Writes the transition table of a Gymnasium environment as an MDP file.

    .local/python/bin/python scripts/gymnasium_export.py FrozenLake-v1 --out lake.json
    .local/python/bin/python scripts/gymnasium_export.py FrozenLake-v1 --map 8x8 --out lake.json
    .local/python/bin/python scripts/gymnasium_export.py Blackjack-v1 --gamma 1 --out blackjack.json
    .local/python/bin/python scripts/gymnasium_export.py mine.py:make --gamma 0.99 --out mine.json

It takes any environment with a table P {state: {action: [(p, next, reward, terminated), …]}}, and
Blackjack, whose table follows from its rules. mine.py:make is a name in a Python file of one's
own: a table P, an environment that has one, or a function without arguments that returns either.

The file holds {"gamma", "P"} as they are, and where the environment says so "start", the "shape" of
a grid and names of "states" and "actions". What reads it has nothing follow a transition that
terminates: it leads to a terminal state, which is one more, the last, unless the state that
the table names only stays where it is for nothing.
"""

import argparse
import itertools
import json
import os
import runpy
import sys
import warnings

import gymnasium
import numpy as np
from gymnasium.envs.toy_text import blackjack

ACTIONS = {
    "FrozenLakeEnv": ["left", "down", "right", "up"],
    "CliffWalkingEnv": ["up", "right", "down", "left"],
    "TaxiEnv": ["south", "north", "east", "west", "pick up", "drop off"],
    "BlackjackEnv": ["stick", "hit"],
}


def make(name, **options):
    """Returns the environment or the table of the name."""
    if ".py:" not in name:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions of an environment, which the caller chose
            return gymnasium.make(name, **options).unwrapped
    path, _, attribute = name.rpartition(":")
    found = runpy.run_path(path)
    if attribute not in found:
        raise ValueError(f"{path} has no {attribute!r}")
    found = found[attribute]
    found = found() if callable(found) else found
    return getattr(found, "unwrapped", found)


def problem(environment, gamma):
    """Returns what the file holds."""
    out = {"gamma": gamma}
    if isinstance(environment, blackjack.BlackjackEnv):
        table, out["start"] = deal(environment)
    elif isinstance(environment, dict):
        table = environment
    else:
        table = getattr(environment, "P", None)
        start = getattr(environment, "initial_state_distrib", None)
        if start is not None:
            out["start"] = np.asarray(start, float).tolist()
    if table is None:
        raise ValueError(
            f"{type(environment).__name__} has no transition table P, and its dynamics cannot be read off it; "
            "write the table yourself (see docs/your-own.md)")
    shape = getattr(environment, "shape", None) or getattr(getattr(environment, "desc", None), "shape", None)
    if shape and np.prod(shape) == len(table):
        out["shape"] = [int(n) for n in shape]
    if type(environment).__name__ in ACTIONS:
        out["actions"] = ACTIONS[type(environment).__name__]
    if any(isinstance(s, str) for s in table):
        out["states"] = list(table)
    out["P"] = {
        str(s): {str(a): [[float(p), str(t) if isinstance(t, str) else int(t), float(r), bool(end)] for p, t, r, end in row]
                 for a, row in (actions.items() if isinstance(actions, dict) else enumerate(actions))}
        for s, actions in (table.items() if isinstance(table, dict) else enumerate(table))
    }
    return out


def deal(environment):
    """Returns Blackjack's table and start distribution, by its rules: an infinite deck, a dealer who draws up to 17."""
    cards = [(card, 1 / len(blackjack.deck)) for card in blackjack.deck]

    def name(hand, card):
        total, ace = blackjack.sum_hand(hand), blackjack.usable_ace(hand)
        # A hand of two cards that makes 21 pays by rules of its own.
        return f"{'natural' if blackjack.is_natural(hand) else total}{' with ace' if ace else ''} against {card}"

    def dealers(hand):
        """Yields the hands that the dealer ends with, and their probabilities."""
        if blackjack.sum_hand(hand) >= 17:
            yield hand, 1.0
            return
        for card, p in cards:
            for end, q in dealers(hand + [card]):
                yield end, p * q

    final = {}  # by the card that is seen: {(score, natural): probability}
    for card in sorted(set(blackjack.deck)):
        final[card] = {}
        for hidden, p in cards:
            for end, q in dealers([card, hidden]):
                key = blackjack.score(end), blackjack.is_natural(end)
                final[card][key] = final[card].get(key, 0) + p * q

    def stick(hand, card):
        for (score, natural), p in final[card].items():
            reward = float(blackjack.cmp(blackjack.score(hand), score))
            if blackjack.is_natural(hand):
                if environment.sab:
                    reward = reward if natural else 1.0
                elif environment.natural and reward == 1:
                    reward = 1.5
            yield p, name(hand, card), reward, True

    def hit(hand, card):
        for drawn, p in cards:
            after = hand + [drawn]
            if blackjack.is_bust(after):
                yield p, name(hand, card), -1.0, True
            else:
                yield p, name(after, card), 0.0, False

    start, hands = {}, {}
    for (a, p), (b, q), (card, r) in itertools.product(cards, cards, cards):
        state = name([a, b], card)
        hands[state] = [a, b], card
        start[state] = start.get(state, 0) + p * q * r
    table, todo = {}, list(hands)
    while todo:
        state = todo.pop()
        hand, card = hands[state]
        table[state] = {"stick": list(stick(hand, card)), "hit": list(hit(hand, card))}
        for drawn, _ in cards:
            after = hand + [drawn]
            if not blackjack.is_bust(after) and name(after, card) not in hands:
                hands[name(after, card)] = after, card
                todo.append(name(after, card))
    return table, start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", help="e.g. FrozenLake-v1, Taxi-v4, Blackjack-v1, or FILE.py:NAME")
    parser.add_argument("--map", choices=["4x4", "8x8"], help="FrozenLake's map")
    parser.add_argument("--gamma", type=float, default=0.9, help="discount, default 0.9; 1 where episodes surely end")
    parser.add_argument("--out", required=True, help="file to write, .json")
    arguments = parser.parse_args()
    if not 0 <= arguments.gamma <= 1:
        parser.error(f"gamma is {arguments.gamma}, want 0 <= gamma <= 1")
    if not arguments.out.endswith(".json"):
        parser.error(f"{arguments.out}: want a name that ends in .json")
    options = {"map_name": arguments.map} if arguments.map else {}
    try:
        content = json.dumps(problem(make(arguments.environment, **options), arguments.gamma), separators=(",", ":"))
        new = f"{arguments.out}.tmp"
        with open(new, "w", encoding="utf-8") as file:
            file.write(content + "\n")
        os.replace(new, arguments.out)
    except (ValueError, gymnasium.error.Error, TypeError, OSError) as error:
        sys.exit(f"gymnasium_export: {error}")


if __name__ == "__main__":
    main()
