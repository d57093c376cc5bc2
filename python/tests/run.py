"""Runs the package's tests on a module that was built: run.py MODULE. Installs nothing."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).parent


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def main(module: str) -> int:
    if not module:
        skip("the Python module is not built (-DPLACET_PYTHON=ON, or ./dev python)")
    try:
        import pytest  # noqa: F401
    except ImportError:
        skip(f"{sys.executable} has no pytest")
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(folder) / "placet"
        shutil.copytree(HERE.parent / "src" / "placet", package)
        shutil.copy(module, package)
        (package / "data").symlink_to(HERE.parent.parent / "data")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=HERE.parent, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
