"""What set-up says where Go is missing, too old, or cannot fetch the version that go.mod names."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLCHAIN = "go" + re.search(r"^go (.*)$", (ROOT / "go.mod").read_text(), re.M)[1]


def setup(go):
    """Runs set-up, without any step, with a script in place of go."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "go")
        program.write_text("#!/bin/sh\n" + go)
        program.chmod(0o755)
        environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
        return subprocess.run([ROOT / "scripts/setup.sh", "none"], env=environment, capture_output=True, text=True,
                              check=False)


class Prerequisites(unittest.TestCase):
    def test_go(self):
        offline = f'[ $GOTOOLCHAIN = local ] && echo go1.26.8 || {{ echo "{TOOLCHAIN}: no network" >&2; exit 1; }}'
        for name, go, want in [
            ("missing", "exit 127", f"Go 1.21 or newer is needed (it fetches {TOOLCHAIN}); found: none"),
            ("old", "echo go1.20.14", "found: go1.20.14"),
            ("older", "echo go1.9", "found: go1.9"),
            ("offline", offline, f"go1.26.8 could not fetch {TOOLCHAIN}:\nsetup:   {TOOLCHAIN}: no network"),
        ]:
            with self.subTest(name):
                result = setup(go)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(want, result.stderr)

    def test_go_that_fetches(self):
        """Go 1.21 and later are let through, to what set-up asks for next."""
        for version in ["go1.21rc2", "go1.26.8", "go1.27.3", "go2.0"]:
            with self.subTest(version):
                said = setup(f"case $* in *CGO_ENABLED*) echo 0;; *) echo {version};; esac").stderr
                self.assertIn("cgo is off", said)
                self.assertNotIn("is needed (it fetches", said)


if __name__ == "__main__":
    unittest.main()
