"""Tests of verify: python -m unittest discover -s scripts -p '*_test.py'."""

import csv
import gzip
import hashlib
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np

import verify

PAPER = pathlib.Path(__file__).parent.parent / "artifacts/paper"


class Streams(unittest.TestCase):
    def test_known_outputs(self):
        # The first outputs of this seed in the tests of Go's math/rand/v2.
        x = verify.streams([b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456"], 130)[0]
        self.assertEqual([hex(int(v)) for v in x[:3]], ["0xb773b6063d4616a5", "0x1160af22a66abc3c", "0x8c2599d9418d287c"])

    def test_streams_do_not_depend_on_each_other(self):
        keys = [verify.key(7, "mdp", i) for i in range(5)]
        together = verify.streams(keys, 300)
        for i, k in enumerate(keys):
            np.testing.assert_array_equal(verify.streams([k], 300)[0], together[i])

    def test_logarithm(self):
        x = np.linspace(1e-300, 1, 10_001)
        np.testing.assert_allclose(verify.log(x), np.log(x), rtol=3e-16, atol=0)


class Updates(unittest.TestCase):
    def test_projection_is_the_nearest_policy(self):
        rng = np.random.default_rng(1)
        x = rng.normal(size=(50, 3))
        p = verify.project(x)
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-15)
        for other in rng.dirichlet(np.ones(3), 200):
            self.assertTrue((((x - p) ** 2).sum(axis=1) <= ((x - other) ** 2).sum(axis=1)).all())

    def test_one_state(self):
        # One state, rewards 0 and 1: Q* = (9, 10) at gamma = 0.9, and Q of the uniform policy (4.5, 5.5).
        p, r = np.ones((1, 1, 2, 1)), np.array([[[0.0, 1.0]]])
        np.testing.assert_allclose(verify.optimum(p, r)[0, 0], [9, 10], rtol=1e-14)
        np.testing.assert_allclose(verify.evaluate(p, r, np.full((1, 1, 1, 2), 0.5))[0, 0, 0], [4.5, 5.5], rtol=1e-14)


class Artifacts(unittest.TestCase):
    def test_all_of_the_paper_preset(self):
        found, looked = verify.verify(PAPER)
        self.assertEqual(found, [], looked)


def reseal(folder, edit=None):
    """Makes a manifest consistent again after an edit of its folder or of itself."""
    path = folder / "manifest.json"
    text = path.read_text()
    if edit:
        text = edit(text)
    for name, old in json.loads(text)["files"].items():
        text = text.replace(old, hashlib.sha256((folder / name).read_bytes()).hexdigest())
    old = json.loads(text)["seal"]
    path.write_text(text.replace(old, verify.seal(text)))


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def edit_table(folder, name, edit):
    with gzip.open(folder / name, "rt") as file:
        rows = list(csv.reader(file))
    edit(rows)
    with gzip.open(folder / name, "wt", newline="") as file:
        csv.writer(file).writerows(rows)
    reseal(folder)


def edit_arrays(folder, edit):
    arrays = dict(np.load(folder / "policies.npz"))
    edit(arrays)
    np.savez(folder / "policies.npz", **arrays)
    reseal(folder)


def set_value(rows, row, name, change):
    column = rows[0].index(name)
    rows[row][column] = repr(change(float(rows[row][column])))


def swap(array, i, j):
    array[i], array[j] = array[j].copy(), array[i].copy()


def mix(arrays):
    """Better policies than the stored ones, still policies."""
    arrays["policies"][0, 20] = np.eye(arrays["policies"].shape[-1])[arrays["policies"][0, 40].argmax(axis=1)]


# Of LOOP the policies of all rounds are stored, of ENDS those of rounds 20 and 40.
LOOP, ENDS = "confirmation/policyattention-S4-14100", "benchmark/policyattention-S8-18100"
MEANS, BACKUPS, LONG = "critics/sample-mean-S4", "backups/sample-mean-S4", "long/policyattention-S4-14103"
ALONG = "quality/policyattention-3200-S8-18100"
STEP, RUN = "mechanism/policyattention-S8-18100", "train/proximal-plain-S8-18100"

# What is planted, where, and what must be said of it.
CORRUPTIONS = {
    "byte of the rounds": (LOOP, lambda f: flip(f / "rounds.csv.gz"), "rounds.csv.gz: its SHA-256"),
    "byte of the policies": (LOOP, lambda f: flip(f / "policies.npz"), "policies.npz: its SHA-256"),
    "byte of the weights": (RUN, lambda f: flip(f / "weights.safetensors"), "weights.safetensors: its SHA-256"),
    "byte of a snapshot": (RUN, lambda f: flip(f / "weights-6400.safetensors"), "weights-6400.safetensors: its SHA-256"),
    "byte of the losses": (RUN, lambda f: flip(f / "loss.csv.gz"), "loss.csv.gz: its SHA-256"),
    "byte of the distances": (STEP, lambda f: flip(f / "distances.csv.gz"), "distances.csv.gz: its SHA-256"),
    "digit of a manifest": (LOOP, lambda f: (f / "manifest.json").write_text((f / "manifest.json").read_text().replace("0.8", "0.7")), "its seal"),
    "removed table": (LOOP, lambda f: (f / "rounds.csv.gz").unlink(), "its files are not those"),
    "added file": (LOOP, lambda f: (f / "more").touch(), "its files are not those"),
    "renamed folder": (LOOP, lambda f: f.rename(f.with_name(f.name[:-1] + "x")), "not that of the folder's name"),
    "edited root": (LOOP, lambda f: reseal(f, lambda t: t.replace('"root": 34100', '"root": 34101')), "not that of its configuration"),
    "edited training seed": (RUN, lambda f: reseal(f, lambda t: t.replace('"seed": 18100', '"seed": 18101')), "not that of its configuration"),
    "edited fixture digest": (LOOP, lambda f: reseal(f, lambda t: t.replace(json.loads(t)["fixtures"], "0" * 64)), "another digest"),
    "edited median": (LOOP, lambda f: reseal(f, lambda t: t.replace('"median_loss": 0.01', '"median_loss": 0.00')), "median loss at 20"),
    "edited loss": (LOOP, lambda f: edit_table(f, "rounds.csv.gz", lambda rows: set_value(rows, 100, "loss", lambda v: v + 1e-9)), "loss [2, 17]"),
    "edited residual": (LOOP, lambda f: edit_table(f, "rounds.csv.gz", lambda rows: set_value(rows, 100, "defect", lambda v: v + 1e-9)), "round 17, defect"),
    "swapped rows": (LOOP, lambda f: edit_table(f, "rounds.csv.gz", lambda rows: swap_values(rows, 50, 51)), "loss [1, 8]"),
    "swapped problems": (LOOP, lambda f: edit_arrays(f, lambda a: swap(a["policies"], 3, 4)), "first policies"),
    "better policies": (LOOP, lambda f: edit_arrays(f, mix), "loss [0, 20]"),
    "edited loss of a round that is kept": (ENDS, lambda f: edit_table(f, "rounds.csv.gz", lambda rows: set_value(rows, 21, "loss", lambda v: v + 1e-9)), "loss [0, 0]"),
    "swapped problems of rounds that are kept": (ENDS, lambda f: edit_arrays(f, lambda a: swap(a["policies"], 3, 4)), "loss [3, 0]"),
    "policy that is none": (LOOP, lambda f: edit_arrays(f, lambda a: a["policies"].__setitem__((0, 5, 0, 0), 2)), "sums of rows"),
    "edited answer": (STEP, lambda f: edit_arrays(f, lambda a: swap(a["next"][0, 0].T, 0, 1)), "pmd [0]"),
    "edited distance": (STEP, lambda f: edit_table(f, "distances.csv.gz", lambda rows: set_value(rows, 4, "identity", lambda v: v + 1e-9)), "identity [3]"),
    "edited step size": (STEP, lambda f: edit_table(f, "steps.csv.gz", lambda rows: set_value(rows, 2, "fitted", lambda v: v + 5e-3)), "fitted [1]"),
    "swapped policies of a critic without a network": (MEANS, lambda f: edit_arrays(f, lambda a: swap(a["policies"], 3, 4)), "not those of exact PMD with this critic"),
    "another weight of the mean": (MEANS, lambda f: reseal(f, lambda t: t.replace('"weight": 1', '"weight": 0.9')), "not that of its configuration"),
    "edited value of the mean": (BACKUPS, lambda f: edit_arrays(f, lambda a: a["values"].__setitem__((0, 2, 1, 1), 0.5)), "values [2, 1, 1]"),
    "edited error of the mean": (BACKUPS, lambda f: edit_table(f, "backups.csv.gz", lambda rows: set_value(rows, 3, "mae", lambda v: v / 2)), "mae [2]"),
    "edited loss after 400 rounds": (LONG, lambda f: edit_table(f, "rounds.csv.gz", lambda rows: set_value(rows, 3, "loss", lambda v: v + 1e-9)), "loss [0, 0]"),
    "another round": (LONG, lambda f: edit_table(f, "rounds.csv.gz", lambda rows: set_value(rows, 3, "round", lambda v: v - 1)), "round [0, 2]"),
    "median after 400 rounds": (LONG, lambda f: reseal(f, lambda t: t.replace('"median_loss": ', '"median_loss": 1')), "median loss at 100"),
    "edited loss along training": (ALONG, lambda f: edit_table(f, "losses.csv.gz", lambda rows: set_value(rows, 66, "loss_40", lambda v: v + 1e-9)), "losses after 200 steps [1, 1]"),
    "swapped steps": (ALONG, lambda f: edit_table(f, "losses.csv.gz", lambda rows: swap(rows, 1, 65)), "step [0, 0]"),
    "swapped policies along training": (ALONG, lambda f: edit_arrays(f, lambda a: swap(a["policies"], 3, 4)), "losses after 200 steps [0, 0]"),
    "median along training": (ALONG, lambda f: reseal(f, lambda t: t.replace('"median_loss_T20": 0', '"median_loss_T20": 1')), "median losses after 100 steps"),
    "lost step": (RUN, lambda f: edit_table(f, "loss.csv.gz", lambda rows: rows.pop()), "step has shape"),
    "weights of another run": (RUN, lambda f: (edit_weights(f), reseal(f)), "another configuration"),
}


def swap_values(rows, i, j):
    rows[i][2:], rows[j][2:] = rows[j][2:], rows[i][2:]


def edit_weights(folder):
    data = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(data.replace(rb"\"seed\":18100", rb"\"seed\":18101"))


# The parts of an interval that are changed.
SIDES = ("value", "lo", "hi")


class Corruptions(unittest.TestCase):
    def test_the_document_counts_them(self):
        text = " ".join((PAPER.parent.parent / "docs/evidence.md").read_text().split())
        self.assertIn(f"{len(CORRUPTIONS) + len(Field.CHANGED) + len(SIDES)} for `scripts/verify.py`", text)

    def test_each_is_found(self):
        for name, (where, plant, said) in CORRUPTIONS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as temporary:
                (source,) = PAPER.glob(where + "-*")
                folder = pathlib.Path(temporary) / where.split("/")[0] / source.name
                shutil.copytree(source, folder)
                plant(folder)
                found, _ = verify.verify(pathlib.Path(temporary))
                self.assertEqual(len(found), 1, found)
                self.assertIn(said, found[0])

    def test_resealing_alone_changes_nothing(self):
        with tempfile.TemporaryDirectory() as temporary:
            for where in (LOOP, ENDS, STEP, RUN):
                (source,) = PAPER.glob(where + "-*")
                folder = pathlib.Path(temporary) / where.split("/")[0] / source.name
                shutil.copytree(source, folder)
                reseal(folder)
            self.assertEqual(verify.verify(pathlib.Path(temporary))[0], [])

    def test_edited_interval(self):
        with tempfile.TemporaryDirectory() as temporary:
            root = pathlib.Path(temporary)
            claims = json.loads((PAPER / "claims.json").read_text())
            e = next(e for e in claims["Evidence"] if e["x"][0].startswith(LOOP))
            for name in {*e["x"], *e.get("y", [])}:
                shutil.copytree(PAPER / name, root / name)
            for side in (*SIDES, None):
                edited = dict(e)
                if side:
                    edited[side] *= 1 + 1e-9
                (root / "claims.json").write_text(json.dumps({"Evidence": [edited]}))
                found, _ = verify.verify(root)
                self.assertEqual(len(found), 1 if side else 0, found)


if __name__ == "__main__":
    unittest.main()
