"""Tests of gymnasium_export: python -m unittest discover -s scripts -p '*_test.py'."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import gymnasium
import numpy as np

import gymnasium_export as export

SCRIPTS = pathlib.Path(__file__).parent

ONE_STATE = """
P = {0: {0: [(1.0, 0, 2, True)], 1: [(0.5, 0, 1, False), (0.5, 0, 0, False)]}}

class Mine:
    P = [[[(1.0, 0, 3, True)]]]

def make():
    return Mine()
"""


def q_star(problem, sweeps):
    """Q* of a problem by value iteration on its table, where nothing follows an end."""
    table, v = problem["P"], dict.fromkeys(problem["P"], 0.0)
    for _ in range(sweeps):
        q = {s: [sum(p * (r + (0 if end else problem["gamma"] * v[str(t)])) for p, t, r, end in row) for row in actions.values()]
             for s, actions in table.items()}
        v = {s: max(row) for s, row in q.items()}
    return q


class Problems(unittest.TestCase):
    def check(self, size, name, gamma=0.9, **options):
        problem = export.problem(export.make(name, **options), gamma)
        self.assertEqual(len(problem["P"]), size)
        for actions in problem["P"].values():
            for row in actions.values():
                self.assertAlmostEqual(sum(t[0] for t in row), 1, delta=1e-12)
        return problem, q_star(problem, 400)

    def test_frozen_lake(self):
        problem, q = self.check(16, "FrozenLake-v1")
        # V* of the start state at gamma = 0.9, as printed in many courses: 0.069.
        self.assertAlmostEqual(max(q["0"]), 0.069, delta=5e-4)
        self.assertEqual(problem["shape"], [4, 4])
        self.assertEqual(problem["start"][0], 1)
        self.check(64, "FrozenLake-v1", map_name="8x8")

    def test_cliff_walking(self):
        _, q = self.check(48, "CliffWalking-v1")
        # Thirteen steps of -1 along the cliff: up, eleven to the right, down.
        self.assertAlmostEqual(max(q["36"]), -(1 - 0.9**13) / (1 - 0.9), delta=1e-12)

    def test_taxi(self):
        _, q = self.check(500, "Taxi-v4")
        self.assertAlmostEqual(max(map(max, q.values())), 20, delta=1e-12)  # one drop-off away from the end

    def test_blackjack(self):
        """The table against the environment itself, played by a policy that sticks at 15 and more."""
        for options in {}, {"sab": False, "natural": True}:
            with self.subTest(**options):
                problem, _ = self.check(290, "Blackjack-v1", gamma=1, **options)
                v = dict.fromkeys(problem["P"], 0.0)
                for _ in range(20):
                    for s, actions in problem["P"].items():
                        sticks = s.startswith("natural") or int(s.split()[0]) >= 15
                        row = actions["stick" if sticks else "hit"]
                        v[s] = sum(p * (r + (0 if end else v[t])) for p, t, r, end in row)
                value = sum(p * v[s] for s, p in problem["start"].items())
                environment, total, games = gymnasium.make("Blackjack-v1", **options).unwrapped, 0.0, 20_000
                environment.reset(seed=1)
                for _ in range(games):
                    (score, _, _), _ = environment.reset()
                    end = False
                    while not end:
                        (score, _, _), reward, end, _, _ = environment.step(int(score < 15))
                    total += reward
                # Rewards lie within 1.5; four standard deviations of the mean.
                self.assertAlmostEqual(total / games, value, delta=4 / games**0.5)

    def test_own_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mine.py")
            path.write_text(ONE_STATE)
            for name, want in ("P", [[1.0, 0, 2.0, True]]), ("make", [[1.0, 0, 3.0, True]]), ("Mine", [[1.0, 0, 3.0, True]]):
                self.assertEqual(export.problem(export.make(f"{path}:{name}"), 0.5)["P"]["0"]["0"], want)
            with self.assertRaisesRegex(ValueError, "has no 'other'"):
                export.make(f"{path}:other")

    def test_without_a_table(self):
        with self.assertRaisesRegex(ValueError, "CartPoleEnv has no transition table"):
            export.problem(export.make("CartPole-v1"), 0.9)


class CommandLine(unittest.TestCase):
    def run_export(self, *arguments):
        return subprocess.run([sys.executable, SCRIPTS / "gymnasium_export.py", *arguments],
                              capture_output=True, text=True)

    def test_refusals(self):
        for arguments, message in [
            (["FrozenLake-v1", "--gamma", "1.5", "--out", "x.json"], "want 0 <= gamma <= 1"),
            (["FrozenLake-v1", "--out", "x.txt"], "ends in .json"),
            (["NoSuchLake-v1", "--out", "x.json"], "NoSuchLake"),
        ]:
            done = self.run_export(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)

    def test_solve_agrees(self):
        """The command on real problems, with the step size that it suggests, against the table as it is."""
        with tempfile.TemporaryDirectory() as folder:
            command, problem = f"{folder}/policyattention", f"{folder}/mdp.json"
            subprocess.run(["go", "build", "-o", command, "./policyattention/cmd/policyattention"],
                           cwd=SCRIPTS.parent, check=True)
            for arguments in ["FrozenLake-v1"], ["FrozenLake-v1", "--map", "8x8"], ["CliffWalking-v1"], ["Taxi-v4"], ["Blackjack-v1"]:
                with self.subTest(arguments):
                    exported = self.run_export(*arguments, "--out", problem)
                    self.assertEqual(exported.returncode, 0, exported.stderr)
                    done = subprocess.run(
                        [command, "solve", "--mdp", problem, "--actor", "exact", "--rounds", "200", "--eta", "auto", "--json"],
                        capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    answer = json.loads(done.stdout)
                    want = q_star(json.loads(pathlib.Path(problem).read_text()), 600)
                    for got, row in zip(answer["q_star"], want.values()):
                        # Two solvers, both to rounding, of values up to 20.
                        np.testing.assert_allclose(got, row, rtol=0, atol=1e-10)
                    self.assertLess(answer["loss"], 1e-2)


if __name__ == "__main__":
    unittest.main()
