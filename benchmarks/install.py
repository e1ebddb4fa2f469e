"""Packages and megabytes that the package and each of its extras install, in fresh environments.

Byte code is not counted: pip writes it, other installers do not. Needs a package index, and uv.

Usage: python benchmarks/install.py
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from table import print_table

ROOT = Path(__file__).parents[1]
OWN = frozenset({"test", "docs"})
"""Extras that contributors need, not users."""


def run(*words: str) -> str:
    """Run a program and return what it says; fails with what it says otherwise."""
    completed = subprocess.run(words, check=False, capture_output=True, text=True)
    if completed.returncode:
        raise SystemExit(completed.stderr)
    return completed.stdout


def size_of(folder: Path) -> int:
    """Return the bytes of all files but byte code."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sum(path.stat().st_size for path in files)


def measure(wheel: Path, extra: str) -> tuple[str, int, float]:
    """Return the requirement, its packages and their megabytes."""
    requirement = f"pytest-regen[{extra}]" if extra else "pytest-regen"
    with tempfile.TemporaryDirectory() as folder:
        run("uv", "venv", "--quiet", "--python", sys.executable, folder)
        run(
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            folder,
            f"{requirement} @ {wheel.as_uri()}",
        )
        packages = run("uv", "pip", "list", "--python", folder, "--format", "freeze").splitlines()
        size = sum(map(size_of, Path(folder).glob("[Ll]ib/*/site-packages")))
    return requirement, len(packages), size / 1e6


def main() -> None:
    """Measure and print."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = sorted(set(project["optional-dependencies"]) - OWN - {"all"})
    with tempfile.TemporaryDirectory() as folder:
        run("uv", "build", "--wheel", "--quiet", "--out-dir", folder, str(ROOT))
        (wheel,) = Path(folder).glob("*.whl")
        rows = [measure(wheel, extra) for extra in ("", *extras, "all")]
    print_table(
        ("`pip install`", "packages", "MB"),
        [
            (f"`{requirement}`", str(packages), f"{size:.0f}")
            for requirement, packages, size in rows
        ],
    )


if __name__ == "__main__":
    main()
