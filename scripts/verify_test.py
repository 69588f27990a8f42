"""Tests of verify: python -m unittest discover -s scripts -p '*_test.py'."""

import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import methods
import verify

PAPER = pathlib.Path(__file__).parent.parent / "artifacts/paper"


class Streams(unittest.TestCase):
    def test_known_outputs(self):
        # The first outputs of this seed in the tests of Go's math/rand/v2.
        x = methods.streams([b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456"], 130)[0]
        self.assertEqual([*x[:3]], [0xB773B6063D4616A5, 0x1160AF22A66ABC3C, 0x8C2599D9418D287C])

    def test_streams_do_not_depend_on_each_other(self):
        keys = [methods.key(7, "mdp", i) for i in range(5)]
        together = methods.streams(keys, 300)
        for i, k in enumerate(keys):
            np.testing.assert_array_equal(methods.streams([k], 300)[0], together[i])

    def test_families(self):
        for family in ("random", "sparse-transitions", "strong-mixing", "sparse-rewards", "ring"):
            p, r, pi = methods.draw(family, 7, 4, 3, 5)
            few = methods.draw(family, 7, 4, 3, 2)
            for x, y in zip((p, r, pi), few):
                np.testing.assert_array_equal(x[:2], y, family)
            np.testing.assert_allclose(p.sum(axis=-1), 1, atol=1e-15, err_msg=family)
            np.testing.assert_allclose(pi.sum(axis=-1), 1, atol=1e-15, err_msg=family)
            self.assertLessEqual(np.abs(r).max(), 1)


class Updates(unittest.TestCase):
    def test_one_state(self):
        # One state, rewards 0 and 1, gamma = 0.9: Q* = (9, 10), Q of the uniform policy (4.5, 5.5).
        p, r = np.ones((1, 1, 2, 1)), np.array([[[0.0, 1.0]]])
        np.testing.assert_allclose(methods.optimum(p, r)[0, 0], [9, 10], rtol=1e-14)
        q = methods.evaluate(p, r, np.full((1, 1, 1, 2), 0.5))[0, 0, 0]
        np.testing.assert_allclose(q, [4.5, 5.5], rtol=1e-14)

    def test_draws(self):
        rows = np.array([[0.2, 0.5, 0.3]])
        np.testing.assert_array_equal(methods.pick(np.array([0.0, 0.19, 0.2, 0.69, 0.7, 0.99]), rows), [0, 0, 1, 1, 2, 2])

    def test_rows_of_given_means(self):
        rows, values = methods.dirichlet(methods.streams([bytes(32)], 60).reshape(5, 4, 3)), np.array([-0.5, 0.1, 0.5])
        means = np.linspace(-0.4, 0.45, 4)
        tilted = methods.tilt(rows, values, np.tile(means, (5, 1)))
        np.testing.assert_allclose(tilted @ values, np.tile(means, (5, 1)), atol=1e-13)
        logits = np.log(tilted / rows)  # theta values, up to a constant
        slopes = np.diff(logits, axis=-1) / np.diff(values)
        np.testing.assert_allclose(slopes[..., 0], slopes[..., 1], rtol=1e-8)


EXACT_PMD = "exact-pmd-S8"
RUNS = {
    "prior": ("policyattention-prior-S8-18100", "policyattention-prior-S8-18101"),
    "benchmark": (EXACT_PMD,),
    "headline": (EXACT_PMD,),
}
OTHERS = {  # each a method or a critic of its own
    "benchmark": (
        "actor-critic-source-S8",
        "algorithm-distillation-cpu-S8-18100",
        "policyattention-learned-critic-S8-18100",
    ),
    "headline": ("liang-lai-paper-features-S8-18100", "policyattention-sample-mean-S8-18100"),
    "critics": ("anchored-critic-S8-18100",),
    "sharpened": ("algorithm-distillation-cpu-tuned-S8-18100", "liang-lai-tuned-S8-18100"),
}
NETWORK, EXACT, MANY = "rows/prior", "rows/benchmark", "rows/headline"
POLICIES, PROBLEMS = "policies/prior", "problems"


def read(root, name):
    return pq.read_table(root / f"{name}.parquet")


def write(root, name, table):
    path = root / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def of_run(table, x):
    """Which rows of a table are of a record."""
    mask = True
    for column in ("method", "recipe", "s", "seed"):
        value = x.get(column, "" if column == "recipe" else 0)
        mask = pc.and_(mask, pc.equal(table[column], value))
    return mask


def copy(root, runs):
    """Runs with their weights and their problems, sealed."""
    stored = json.loads((PAPER / "runs.json").read_text())
    records = [x for block in runs for x in stored if x["block"] == block and x["name"] in runs[block]]
    for block in runs:
        for name in (f"{kind}/{block}" for kind in ("rows", "policies", "choices")):
            if (PAPER / f"{name}.parquet").exists():
                table = read(PAPER, name)
                table = pa.concat_tables(table.filter(of_run(table, x)) for x in records if x["block"] == block)
                if len(table) > 0:
                    write(root, name, table)
    problems = read(PAPER, PROBLEMS)
    write(root, PROBLEMS, problems.filter(pc.equal(problems["root"], 38100)))
    (root / "runs.json").write_text(json.dumps(records))
    for weights in {name for x in records for name in x.get("weights", ())}:
        for path in PAPER.glob(f"train/{weights}-{12 * '?'}/weights.safetensors"):
            folder = root / "train" / path.parent.name
            folder.mkdir(parents=True)
            shutil.copy(path, folder)
    seal(root)


def seal(root):
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    lines = [f"{verify.digest(p)}  {p.relative_to(root).as_posix()}\n" for p in files]
    (root / "SHA256SUMS").write_text("".join(lines))


EVERY = "every"


def edit(name, column, row, change):
    """Changes a row of a column, the last for -1, or every one."""

    def apply(root):
        table = read(root, name)
        values = table[column].to_pylist()
        for i in range(len(values)) if row == EVERY else [row]:
            values[i] = change(values[i])
        put(root, name, {column: values})

    return apply


def put(root, name, columns):
    table = read(root, name)
    for column, values in columns.items():
        i = table.column_names.index(column)
        field = table.schema.field(i)
        table = table.set_column(i, field, pa.array(values, field.type))
    write(root, name, table)


def spoil(value):
    """Another value of the same type."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, list):
        return [spoil(value[0]), *value[1:]] if value else [1.0]
    return 0.5 if value is None else value + (1 if isinstance(value, int) else 0.01)


def without(name, column, value):
    def apply(root):
        table = read(root, name)
        write(root, name, table.filter(pc.not_equal(table[column], value)))

    return apply


def twice(name):
    def apply(root):
        table = read(root, name)
        write(root, name, pa.concat_tables([table, table.filter(pc.equal(table["seed"], 18100))]))

    return apply


def lacks(name, column):
    return lambda root: write(root, name, read(root, name).drop_columns([column]))


def record(change):
    """Changes the list of records."""

    def apply(root):
        runs = json.loads((root / "runs.json").read_text())
        (root / "runs.json").write_text(json.dumps(change(runs)))

    return apply


def configured(**changes):
    """Changes the configuration of the first record, a network's."""

    def change(runs):
        runs[0]["config"] |= changes
        return runs

    return record(change)


def of_block(name):
    return lambda runs: [runs[0] | {"block": name}, *runs[1:]]


def swapped_controller(runs):
    runs[0]["config"]["controller"] = runs[1]["config"]["controller"]
    return runs


def keeps_none(runs):
    del runs[0]["config"]["kept"]
    return runs


def left_out(runs):
    runs[0]["weights"] = {"proximal-plain,attention=none-S8-18101": "0"}
    return runs


def fewer(root):
    table = read(root, PROBLEMS)
    write(root, PROBLEMS, table.filter(pc.less(table["problem"], 32)))


def other_run(runs):
    return [runs[0] | {"seed": 1}, *runs[1:]]


def other_root(runs):
    runs[0]["config"]["problems"]["root"] += 1
    return runs


def weights(root, seed=18100):
    return next(root.glob(f"train/proximal-prior-S8-{seed}-*/weights.safetensors"))


def zeroed(root):
    text = bytearray(weights(root).read_bytes())
    text[-200_000:-100_000] = bytes(100_000)
    weights(root).write_bytes(text)


def as_recorded(spoiled):
    """Spoils weights and makes the digest in the record fit."""

    def apply(root):
        before = verify.digest(weights(root))
        spoiled(root)
        text = (root / "runs.json").read_text()
        (root / "runs.json").write_text(text.replace(before, verify.digest(weights(root))))

    return apply


def truncate(name):
    def apply(root):
        path = root / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return apply


def other_seed(root):
    shutil.copy(weights(root, 18101), weights(root))


def greedy(root):
    """Policies greedy for those returned, with losses that fit, but on the first two problems."""
    policies, rows = read(root, POLICIES), read(root, NETWORK)
    problems = verify.fixture("random", 38100, 8, 3, 64)
    planted, losses = policies["policy"].to_pylist(), rows["loss"].to_pylist()
    names = ("seed", "problem", "round")
    at = {key: i for i, key in enumerate(zip(*(rows[k].to_pylist() for k in names)))}
    for i, key in enumerate(zip(*(policies[k].to_pylist() for k in names))):
        m = key[1]
        if key[0] == 18100 and m >= 2:
            pi = np.eye(3)[np.array(planted[i]).reshape(8, 3).argmax(axis=1)]
            planted[i] = pi.ravel().tolist()
            one = [x[m : m + 1] for x in problems]
            losses[at[key]] = float(verify.loss(one, pi[None, None])[0, 0])
    put(root, POLICIES, {"policy": planted})
    put(root, NETWORK, {"loss": losses})


def plus(x):
    return lambda value: value and value + x


def swapped(root):
    policies = read(root, POLICIES)["policy"].to_pylist()
    policies[0], policies[2] = policies[2], policies[0]
    put(root, POLICIES, {"policy": policies})


CORRUPTIONS = {  # what is done, with digests that fit, and what is said
    "a loss": (edit(EXACT, "loss", 7, plus(1e-6)), "loss: "),
    "a loss of the last problem": (edit(NETWORK, "loss", -1, plus(1e-6)), "losses of policies"),
    "losses of a network": (edit(NETWORK, "loss", EVERY, plus(1e-3)), "loss: "),
    "losses of many problems": (edit(MANY, "loss", EVERY, plus(1e-5)), "loss: "),
    "losses that are null": (edit(NETWORK, "loss", EVERY, lambda x: None), "loss: "),
    "small losses of a network": (edit(NETWORK, "loss", EVERY, lambda x: x and max(x - 4e-4, 0)), "loss: "),
    "residuals of a network": (edit(NETWORK, "zeta", EVERY, plus(2e-3)), "zeta: "),
    "residuals that are null": (edit(NETWORK, "zeta", EVERY, lambda x: None), "zeta: "),
    "residuals where there are none": (edit(NETWORK, "delta", 40, lambda x: 0.1), "delta: "),
    "policies swapped": (swapped, "losses of policies"),
    "another policy": (edit(POLICIES, "policy", 5, lambda x: x[3:] + x[:3]), "losses of policies"),
    "no distribution": (edit(POLICIES, "policy", 5, spoil), "sums of policies"),
    "a policy of another shape": (edit(POLICIES, "policy", 5, lambda x: x[:6]), "prior/"),
    "greedy policies with losses made to fit": (greedy, "loss: "),
    "the last reward": (edit(PROBLEMS, "r", 30, lambda x: [*x[:-1], -x[-1]]), "problems "),
    "a problem that is missing": (without(PROBLEMS, "problem", 5), "problems: "),
    "a run that is missing": (without(NETWORK, "seed", 18100), "KeyError"),
    "policies that are missing": (without(POLICIES, "seed", 18100), "prior/"),
    "half of the problems": (fewer, "problems: "),
    "a block without records": (record(lambda runs: runs[2:]), "has no record"),
    "a record of another block": (record(of_block("tuning")), "has no record"),
    "a record of a method that is not run": (configured(controller={"s5rl": {}}), "another run"),
    "a record of an unknown controller": (configured(controller={"foo": {}}), "another run"),
    "a record of exact PMD": (configured(controller=None), "another run"),
    "a record of another run": (record(swapped_controller), "another run"),
    "a record that keeps no policies": (record(keeps_none), "other policies"),
    "weights that may be missing": (record(left_out), "prior/"),
    "a problem of a run that is missing": (without(NETWORK, "problem", 5), "prior/"),
    "a round that is missing": (without(EXACT, "round", 40), "benchmark/"),
    "rows of a run twice": (twice(NETWORK), "twice"),
    "policies of a run twice": (twice(POLICIES), "twice"),
    "a column that is missing": (lacks(EXACT, "loss"), "other columns"),
    "a column of policies that is missing": (lacks(POLICIES, "policy"), "KeyError"),
    "half a file": (truncate("rows/benchmark.parquet"), "benchmark: "),
    "an empty file": (lambda root: (root / "policies/prior.parquet").write_bytes(b""), "prior: "),
    "a record twice": (record(lambda runs: [*runs, runs[0]]), "KeyError"),
    "a record that is missing": (record(lambda runs: runs[1:]), "has no record"),
    "a record of another seed": (record(other_run), "KeyError"),
    "a record of fewer rounds": (configured(rounds=39), "prior/"),
    "a record of other problems": (record(other_root), "gap: "),
    "a record of another step size": (configured(eta=0.7), "loss: "),
    "a record of other policies kept": (configured(kept=[20, 39]), "round of policies"),
    "records that are no JSON": (truncate("runs.json"), "runs.json: "),
    "other weights": (zeroed, "other weights"),
    "other weights, as the record says": (as_recorded(zeroed), "loss: "),
    "weights that are gone": (lambda root: weights(root).unlink(), "other weights"),
    "weights of another seed": (as_recorded(other_seed), "another training run"),
}
for name in (EXACT, "policies/benchmark", PROBLEMS):
    for column in pq.read_schema(PAPER / f"{name}.parquet").names:
        CORRUPTIONS[f"one {column} of {name}"] = edit(name, column, 43, spoil), name.split("/")[-1]
UNSEALED = {  # the same with digests as they were
    "an edited loss": (edit(NETWORK, "loss", 9, lambda x: x + 1e-9), "its SHA-256"),
    "a file beside": (lambda root: (root / "rows/extra").write_text(""), "does not list it"),
    "a file that is missing": (lambda root: weights(root).unlink(), "it is missing"),
    "digests that are missing": (lambda root: (root / "SHA256SUMS").unlink(), "files: "),
    "digests that are none": (lambda root: (root / "SHA256SUMS").write_text("none\n"), "files: "),
}


class Documents(unittest.TestCase):
    def test_example(self):
        text = (PAPER.parents[1] / "docs/evidence.md").read_text()
        code = text.split("import verify\n")[1].split("```")[0]
        printed = []
        exec("import numpy as np, verify\n" + code, {"print": printed.append})
        rows = read(PAPER, EXACT)
        for column, value in {"method": "exact-pmd", "s": 8, "round": 20}.items():
            rows = rows.filter(pc.equal(rows[column], value))
        np.testing.assert_allclose(printed, [np.median(rows["loss"])], rtol=1e-7)


class Corruptions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.stored = pathlib.Path(folder.name, "stored")
        self.changed = pathlib.Path(folder.name, "changed")
        copy(self.stored, RUNS)

    def test_as_stored(self):
        verifier = verify.Verifier(self.stored)
        self.assertEqual(verifier.verify(), [])
        self.assertGreater(verifier.numbers, 40_000)

    def test_each_is_found(self):
        self.assertGreater(len(CORRUPTIONS | UNSEALED), 60)
        for corruptions, sealed in ((CORRUPTIONS, True), (UNSEALED, False)):
            for name, (change, want) in corruptions.items():
                with self.subTest(name):
                    shutil.rmtree(self.changed, ignore_errors=True)
                    shutil.copytree(self.stored, self.changed)
                    change(self.changed)
                    if sealed:
                        seal(self.changed)
                    found = verify.Verifier(self.changed).verify()
                    self.assertTrue(any(want in x for x in found), (name, found))


class Others(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        copy(self.root, OTHERS)

    def found(self):
        seal(self.root)
        return verify.Verifier(self.root).verify()

    def test_as_stored(self):
        self.assertEqual(self.found(), [])

    def test_losses(self):
        for block in OTHERS:
            edit(f"rows/{block}", "loss", EVERY, plus(1e-3))(self.root)
        found = self.found()
        for block, names in OTHERS.items():
            for name in names:
                self.assertTrue(any(x.startswith(f"{block}/{name}: loss: ") for x in found), (name, found))

    def test_weights(self):
        text = (self.root / "runs.json").read_text()
        for path in self.root.glob("train/*/*"):
            before, weights = verify.digest(path), bytearray(path.read_bytes())
            third = len(weights) // 3
            weights[-third - 9000 : -9000] = bytes(third)
            path.write_bytes(weights)
            text = text.replace(before, verify.digest(path))
        (self.root / "runs.json").write_text(text)
        found = self.found()
        for block, names in OTHERS.items():
            for name in names:
                wrong = any(x.startswith(f"{block}/{name}: ") for x in found)
                self.assertEqual(wrong, name != "actor-critic-source-S8", (name, found))

    def test_choices(self):
        for block in ("benchmark", "sharpened"):
            edit(f"choices/{block}", "actions", EVERY, lambda x: [*x[:9], (x[9] + 1) % 3, *x[10:]])(self.root)
        found = self.found()
        self.assertEqual(len(found), 2, found)


if __name__ == "__main__":
    unittest.main()
