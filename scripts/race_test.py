import json, pathlib, sys, tempfile, unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import race


class Race(unittest.TestCase):
    def test_compare(self):
        ours = [-2.0] * 100
        ours[3] = 1e-9  # a loss on its way through zero
        for at, shift, passes in (0, 0, True), (5, 1e-4, True), (3, 1e-4, True), (5, 1e-3, False), (5, float("nan"), False):
            theirs = list(ours)
            theirs[at] += shift
            if passes:
                self.assertLess(race.compare(ours, theirs), 2e-4)
            else:
                self.assertRaises(ValueError, race.compare, ours, theirs)
        self.assertRaises(ValueError, race.compare, ours, ours[:5])

    def test_document(self):
        """The stored table is that of the stored results; a program that failed has nothing in it."""
        text, stored = race.DOCUMENT.read_text(), json.loads(race.STORED.read_text())
        self.assertEqual(race.fill(text, stored), text)
        for r in stored["results"]:
            if r["program"].startswith("PyTorch"):
                r |= {"steps_s": 0, "error": "not there"}
        self.assertRegex(race.table(stored), r"\| actor S=4 +\| 1 × 2 +\| 325 +\| 91.3 scan +\| 0 +\| 3.55 ")

    def test_race(self):
        """Programs take turns; one that computes something else, or ends, has an error and no speed."""
        with tempfile.TemporaryDirectory() as folder:
            def say(name, losses):
                file = pathlib.Path(folder, name)
                file.write_text(f"#!/bin/sh\necho '{losses}'\n"
                                "while read n; do echo \"{\\\"steps\\\": $n, \\\"wall\\\": 1, \\\"cpu\\\": 2}\"; done\n")
                file.chmod(0o755)
                return [str(file)]
            commands = {"first": say("first", '{"losses": [1, 2]}'), "other": say("other", '{"losses": [1, 3]}'),
                        "same": say("same", '{"losses": [1, 2]}'), "ends": ["true"]}
            first, other, same, ends = race.race("work", commands, 1, 1, turns=2, seconds=3)
        for r in first, same:
            self.assertEqual((r["steps_s"], r["steps_cpu_s"], r["setting"]), (6, 3, "1 × 1"))
        for r in other, ends:
            self.assertEqual(r["steps_s"], 0)
            self.assertIn("error", r)


if __name__ == "__main__":
    unittest.main()
