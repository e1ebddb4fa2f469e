"""Python works under ``bwrap`` however it and the project are laid out on the disk."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pytest_regen.sandbox import Limits, Outcome, run
from pytest_regen.sandbox.levels import strongest_level

try:
    HAS_BWRAP = strongest_level() == "bwrap"
except Exception:  # noqa: BLE001 - whatever it is, these tests cannot be run
    HAS_BWRAP = False

pytestmark = pytest.mark.skipif(not HAS_BWRAP, reason="bwrap does not work here")


def says(code: str, python: Path, **options: object) -> str:
    """Return what a program prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        outcome: Outcome = run([str(python), "-I", "-c", code], **options)  # type: ignore[arg-type]
    assert outcome.returncode == 0, outcome.stderr.decode()
    return outcome.stdout.decode().strip()


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A virtual environment in a project, with an editable installation from elsewhere."""
    folder = tmp_path / "project" / ".venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder], check=True
    )
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "installed.py").write_text("here = 'installed'", "utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "editable.py").write_text("here = 'editable'", "utf-8")
    (packages / "editable.pth").write_text(f"{elsewhere}\n", "utf-8")
    mapped = tmp_path / "mapped" / "found"
    mapped.mkdir(parents=True)
    (mapped / "__init__.py").write_text("here = 'found'", "utf-8")
    # As setuptools installs a package that is edited: a finder that knows where each name lies.
    (packages / "_found_finder.py").write_text(
        "import sys\nfrom importlib.util import spec_from_file_location\n"
        f"MAPPING = {{'found': {str(mapped)!r}}}\n"
        "class Finder:\n    @classmethod\n    def find_spec(cls, name, path=None, target=None):\n"
        "        if name in MAPPING:\n"
        "            return spec_from_file_location(name, MAPPING[name] + '/__init__.py')\n"
        "sys.meta_path.append(Finder)\n",
        "utf-8",
    )
    (packages / "found.pth").write_text("import _found_finder\n", "utf-8")
    return folder


def test_a_virtual_environment_inside_the_project(venv: Path) -> None:
    """It is used although names with a dot are hidden; so are editable installations."""
    (venv.parent / ".env").write_text("KEY=secret", "utf-8")
    (venv.parent.parent / "shared.env").write_text("KEY=secret", "utf-8")
    (venv.parent / ".env.local").symlink_to("../shared.env")
    (venv.parent / ".gone").symlink_to("nowhere")
    code = (
        "import editable, found, installed, pathlib\n"
        f"hidden = pathlib.Path({str(venv.parent)!r}, '.env').read_text()\n"
        "print(editable.here, found.here, installed.here, repr(hidden))"
    )

    said = says(code, venv / "bin" / "python", import_path=[venv.parent])

    assert said == "editable found installed ''"


def test_what_is_written_is_gone_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working folder takes what the limit says, and nothing of it stays."""
    code = (
        "import os\nprint(sorted(os.listdir()), open('given/a.txt').read())\n"
        "for folder in ('.', '/tmp'):\n"
        "    try:\n        open(folder + '/large', 'wb').write(bytes(3 << 20))\n"
        "    except OSError as error:\n        print(error.errno)\n"
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    said = run(
        [sys.executable, "-I", "-c", code],
        files={"given/a.txt": b"text"},
        limits=Limits(folder_size=1 << 20),
    )

    assert said.stdout.decode().splitlines() == ["['given'] text", "28", "28"]
    assert not [*tmp_path.iterdir()]
