"""Tests of verify: python -m unittest discover -s scripts -p '*_test.py'."""

import contextlib
import hashlib
import io
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import verify

PAPER = pathlib.Path(__file__).parent.parent / "artifacts/paper"
ROWS, POLICIES = "rows/prior.parquet", "policies/prior.parquet"


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
    def test_one_state(self):
        # One state, rewards 0 and 1: Q* = (9, 10) at gamma = 0.9, and Q of the uniform policy (4.5, 5.5).
        p, r = np.ones((1, 1, 2, 1)), np.array([[[0.0, 1.0]]])
        np.testing.assert_allclose(verify.optimum(p, r)[0, 0], [9, 10], rtol=1e-14)
        np.testing.assert_allclose(verify.evaluate(p, r, np.full((1, 1, 1, 2), 0.5))[0, 0, 0], [4.5, 5.5], rtol=1e-14)


SEEDS = (18100, 18101)


def copy(root):
    """Two runs of the block prior with their weights and their problems, sealed."""
    for name, mask in ((ROWS, "seed"), (POLICIES, "seed"), ("problems.parquet", "root")):
        table = pq.read_table(PAPER / name)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.filter(pc.is_in(table[mask], pa.array([*SEEDS, 38100]))), root / name)
    runs = [x for x in json.loads((PAPER / "runs.json").read_text()) if x["block"] == "prior" and x["seed"] in SEEDS]
    (root / "runs.json").write_text(json.dumps(runs))
    for seed in SEEDS:
        for folder in PAPER.glob(f"train/proximal-prior-S8-{seed}-*"):
            shutil.copytree(folder, root / "train" / folder.name)
    seal(root)


def seal(root):
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(root).as_posix()}\n" for p in files]
    (root / "SHA256SUMS").write_text("".join(lines))


def found(root):
    verifier = verify.Verifier(root)
    with contextlib.redirect_stdout(io.StringIO()):
        verifier.verify()
    return verifier.found


EVERY = "every"


def edit(name, column, row, change):
    def apply(root):
        table = pq.read_table(root / name)
        values = table[column].to_pylist()
        values = [change(v) if row in (i, i - len(values), EVERY) else v for i, v in enumerate(values)]
        i = table.column_names.index(column)
        pq.write_table(table.set_column(i, table.schema.field(i), pa.array(values, table.schema.field(i).type)), root / name)

    return apply


def drop(root):
    table = pq.read_table(root / "rows/prior.parquet")
    pq.write_table(table.filter(pc.not_equal(table["seed"], 18100)), root / "rows/prior.parquet")


def weights(root):
    path = next(root.glob("train/proximal-prior-S8-18100-*/weights.safetensors"))
    text = bytearray(path.read_bytes())
    text[-200_000:-100_000] = bytes(100_000)
    path.write_bytes(text)


def greedy(root):
    """Policies greedy for those returned, with the losses that they have, but on the first two problems."""
    policies, rows = pq.read_table(root / POLICIES), pq.read_table(root / ROWS)
    p, r, pi0 = verify.draw({"family": "random", "root": 38100, "states": 8, "actions": 3, "problems": 64})
    gap = np.abs(verify.optimum(p, r) - verify.evaluate(p, r, pi0[:, None])[:, 0]).max(axis=(1, 2))
    planted, losses = policies["policy"].to_pylist(), rows["loss"].to_pylist()
    at = {key: i for i, key in enumerate(zip(*(rows[k].to_pylist() for k in ("seed", "problem", "round"))))}
    for i, key in enumerate(zip(*(policies[k].to_pylist() for k in ("seed", "problem", "round")))):
        m = key[1]
        if key[0] == 18100 and m >= 2:
            pi = np.eye(3)[np.array(planted[i]).reshape(8, 3).argmax(axis=1)]
            planted[i] = pi.ravel().tolist()
            q = verify.evaluate(p[m : m + 1], r[m : m + 1], pi[None, None])[0, 0]
            losses[at[key]] = float(np.abs(verify.optimum(p[m : m + 1], r[m : m + 1])[0] - q).max() / gap[m])
    for name, table, column, values in ((POLICIES, policies, "policy", planted), (ROWS, rows, "loss", losses)):
        i = table.column_names.index(column)
        pq.write_table(table.set_column(i, table.schema.field(i), pa.array(values, table.schema.field(i).type)), root / name)


def twice(name):
    def apply(root):
        table = pq.read_table(root / name)
        pq.write_table(pa.concat_tables([table, table.filter(pc.equal(table["seed"], 18100))]), root / name)

    return apply


def recorded_twice(root):
    runs = json.loads((root / "runs.json").read_text())
    (root / "runs.json").write_text(json.dumps([*runs, runs[0]]))


CORRUPTIONS = {  # what is done, whether digests are made to fit, and what is said
    "an edited loss, digests as they were": (edit(ROWS, "loss", 9, lambda x: x + 1e-9), False, "its SHA-256"),
    "an edited loss": (edit(ROWS, "loss", EVERY, lambda x: x * 1.01 + 1e-3), True, "loss: "),
    "an edited loss of the last problem": (edit(ROWS, "loss", -1, lambda x: x + 1e-6), True, "losses of policies"),
    "an edited gap": (edit(ROWS, "gap", 100, lambda x: x * 1.001), True, "gap: "),
    "an edited residual": (edit(ROWS, "zeta", EVERY, lambda x: x and x + 0.1), True, "zeta: "),
    "a loss that is null": (edit(ROWS, "loss", EVERY, lambda x: None), True, "loss: "),
    "another round": (edit(ROWS, "round", 3, lambda x: x + 1), True, "round: "),
    "another policy": (edit(POLICIES, "policy", 5, lambda x: x[3:] + x[:3]), True, "losses of policies"),
    "a policy that does not add up": (edit(POLICIES, "policy", 5, lambda x: [x[0] + 0.1, *x[1:]]), True, "sums of policies"),
    "another problem": (edit("problems.parquet", "r", 30, lambda x: [x[0] + 1e-16, *x[1:-1], -x[-1]]), True, "problems random"),
    "a run that is missing": (drop, True, "it has no rows"),
    "other weights": (weights, True, "loss: "),
    "greedy policies with losses made to fit": (greedy, True, "loss: "),
    "rows of a run twice": (twice(ROWS), True, "does not name"),
    "policies of a run twice": (twice(POLICIES), True, "twice"),
    "a record twice": (recorded_twice, True, "twice"),
    "a file beside": (lambda root: (root / "rows/extra").write_text(""), False, "does not list it"),
    "a file that is missing": (lambda root: next(root.glob("train/*/weights.safetensors")).unlink(), False, "it is missing"),
}


class Corruptions(unittest.TestCase):
    def test_as_stored(self):
        with tempfile.TemporaryDirectory() as folder:
            copy(pathlib.Path(folder))
            self.assertEqual(found(pathlib.Path(folder)), [])

    def test_each_is_found(self):
        for name, (change, sealed, want) in CORRUPTIONS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                copy(root)
                change(root)
                if sealed:
                    seal(root)
                all = found(root)
                self.assertTrue(any(want in x for x in all), (name, all))


class Verdicts(unittest.TestCase):
    def found(self, change=lambda text: text):
        root = PAPER.parent.parent
        verifier = verify.Verifier(PAPER)
        with contextlib.redirect_stdout(io.StringIO()):
            verifier.verdicts(change((root / "CLAIMS.md").read_text()), (root / verify.CLAIMS).read_text())
        return verifier.found

    def test_each_is_judged_again(self):
        self.assertEqual(self.found(), [])
        lines = [x for x in (PAPER.parent.parent / "CLAIMS.md").read_text().splitlines() if x.count("|") == 7]
        for line in lines[2:]:
            said = line.split("|")[5].strip()
            flipped = "|".join(x if i != 5 else " differs " if said != "differs" else " holds " for i, x in enumerate(line.split("|")))
            found = self.found(lambda text: text.replace(line, flipped))
            self.assertEqual(len(found), 1, line)


if __name__ == "__main__":
    unittest.main()
