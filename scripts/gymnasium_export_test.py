"""Tests of gymnasium_export: python -m unittest discover -s scripts -p '*_test.py'."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import gymnasium_export as export

SCRIPTS = pathlib.Path(__file__).parent


class Convert(unittest.TestCase):
    def test_terminal_state_becomes_absorbing(self):
        # Gymnasium leaves a goal's own row as if the episode went on (CliffWalking does).
        p, r = export.convert({
            0: {0: [(1.0, 1, -1, True)], 1: [(0.5, 0, -1, False), (0.5, 1, 3, True)]},
            1: {0: [(1.0, 0, -1, False)], 1: [(1.0, 1, -1, True)]},
        })
        np.testing.assert_array_equal(p, [[[0, 1], [0.5, 0.5]], [[0, 1], [0, 1]]])
        np.testing.assert_array_equal(r, [[-1, 1], [0, 0]])

    def test_end_in_a_state_passed_through_gets_a_state_of_its_own(self):
        p, r = export.convert({
            0: {0: [(1.0, 1, 0, False)], 1: [(1.0, 1, 5, True)]},
            1: {0: [(1.0, 0, 2, False)], 1: [(1.0, 1, 0, False)]},
        })
        self.assertEqual(p.shape, (3, 2, 3))
        np.testing.assert_array_equal(p[0], [[0, 1, 0], [0, 0, 1]])
        np.testing.assert_array_equal(p[2], [[0, 0, 1], [0, 0, 1]])
        np.testing.assert_array_equal(r, [[0, 5], [2, 0], [0, 0]])

    def test_probabilities_must_sum_to_one(self):
        with self.assertRaisesRegex(ValueError, "sum to 1"):
            export.convert({0: {0: [(0.7, 0, 0, False)]}})


class Environments(unittest.TestCase):
    def check(self, shape, environment, gamma=0.9, **options):
        p, r = export.table(environment, **options)
        self.assertEqual(p.shape, shape)
        self.assertEqual(r.shape, shape[:2])
        np.testing.assert_allclose(p.sum(axis=2), 1, rtol=0, atol=1e-15)
        q = export.optimal_q(gamma, p, r)
        # Bellman's optimality equation; values are at most 100 in size here.
        np.testing.assert_allclose(q, r + gamma * p @ q.max(axis=1), rtol=0, atol=1e-11)
        return q.max(axis=1)

    def test_frozen_lake(self):
        v = self.check((16, 4, 16), "FrozenLake-v1")
        # V* of the start state at gamma = 0.9, as printed in many courses: 0.069.
        self.assertAlmostEqual(v[0], 0.069, delta=5e-4)
        np.testing.assert_allclose(v[[5, 7, 11, 12, 15]], 0, rtol=0, atol=1e-14)  # holes and goal
        self.check((64, 4, 64), "FrozenLake-v1", map_name="8x8")

    def test_cliff_walking(self):
        v = self.check((48, 4, 48), "CliffWalking-v1")
        # Thirteen steps of -1 along the cliff: up, eleven to the right, down.
        self.assertAlmostEqual(v[36], -(1 - 0.9**13) / (1 - 0.9), delta=1e-12)

    def test_taxi(self):
        v = self.check((501, 6, 501), "Taxi-v4")
        self.assertEqual(v[500], 0)  # the end
        self.assertAlmostEqual(v.max(), 20, delta=1e-12)  # one drop-off away from it

    def test_without_a_table(self):
        with self.assertRaisesRegex(ValueError, "no transition table"):
            export.table("Blackjack-v1")


class CommandLine(unittest.TestCase):
    def run_export(self, *arguments):
        return subprocess.run([sys.executable, SCRIPTS / "gymnasium_export.py", *arguments],
                              capture_output=True, text=True)

    def test_fixture_and_npz(self):
        with tempfile.TemporaryDirectory() as folder:
            out, q_star = f"{folder}/lake.json", f"{folder}/q.json"
            done = self.run_export("FrozenLake-v1", "--out", out, "--q-star", q_star)
            self.assertEqual(done.returncode, 0, done.stderr)
            for made, name in (out, "frozenlake-4x4.json"), (q_star, "frozenlake-4x4.q-star.json"):
                got = json.loads(pathlib.Path(made).read_text())
                want = json.loads((SCRIPTS / "testdata" / name).read_text())
                if isinstance(want, dict):
                    self.assertEqual(got, want)
                else:
                    np.testing.assert_allclose(got, want, rtol=0, atol=1e-14)

            done = self.run_export("FrozenLake-v1", "--out", f"{folder}/lake.npz")
            self.assertEqual(done.returncode, 0, done.stderr)
            mdp = json.loads(pathlib.Path(out).read_text())
            with np.load(f"{folder}/lake.npz") as arrays:
                for key in mdp:
                    np.testing.assert_array_equal(arrays[key], mdp[key])

    def test_refusals(self):
        for arguments, message in [
            (["FrozenLake-v1", "--gamma", "1", "--out", "x.json"], "want 0 <= gamma < 1"),
            (["FrozenLake-v1", "--out", "x.txt"], ".json or .npz"),
            (["NoSuchLake-v1", "--out", "x.json"], "NoSuchLake"),
        ]:
            done = self.run_export(*arguments)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)


class Solve(unittest.TestCase):
    """The command on real problems, with the step size that it suggests."""

    def test_agrees_with_numpy_and_converges(self):
        with tempfile.TemporaryDirectory() as folder:
            command = f"{folder}/policyattention"
            subprocess.run(["go", "build", "-o", command, "./policyattention/cmd/policyattention"],
                           cwd=SCRIPTS.parent, check=True)
            for environment, options in [
                ("FrozenLake-v1", {}), ("FrozenLake-v1", {"map_name": "8x8"}), ("CliffWalking-v1", {}), ("Taxi-v4", {}),
            ]:
                with self.subTest(environment, **options):
                    p, r = export.table(environment, **options)
                    problem = f"{folder}/mdp.json"
                    export.write(problem, 0.9, p, r)
                    done = subprocess.run(
                        [command, "solve", "--mdp", problem, "--actor", "exact", "--rounds", "200", "--eta", "auto", "--json"],
                        capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    answer = json.loads(done.stdout)
                    # Two solvers, both to rounding, of values up to 20.
                    np.testing.assert_allclose(answer["q_star"], export.optimal_q(0.9, p, r), rtol=0, atol=1e-10)
                    self.assertEqual(len(answer["loss"]), 201)
                    self.assertEqual(answer["loss"][0], 1)
                    self.assertLess(answer["loss"][200], 1e-2)


if __name__ == "__main__":
    unittest.main()
