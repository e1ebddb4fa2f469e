"""Python that the language writes itself: linters, type checkers and the interpreter take it."""

import subprocess
import sys
from pathlib import Path

from python_kites import KITES, PYTHON

from pytest_regen.documents.ir import IR, FieldIR, Scalar
from pytest_regen.prompts.values import output_mode
from pytest_regen.sources import assemble

PROFILES = ("default", "dataclass", "typeddict")
LOAD = """\
import importlib, sys, typing, typing_extensions, warnings
warnings.simplefilter("error")
typing.TypedDict = typing_extensions.TypedDict  # pydantic wants it before Python 3.12
sys.path.insert(0, ".")
from pydantic import TypeAdapter
for line in sys.stdin.read().split():
    module = importlib.import_module(line)
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", "") == line and isinstance(value, type):
            TypeAdapter(value).rebuild(force=True)
"""


def write(ir: IR, profile: str) -> str:
    written = []
    for type_ in ir.types:
        mode = output_mode(type_.kind, is_root=type_.is_root, page=1)
        written.append((type_.name, PYTHON.write_page(type_, type_.units, mode, profile=profile)))
    return assemble(written, PYTHON, profile=profile)


def run(folder: Path, *command: str, text: str = "") -> str:
    """Return what a module of this interpreter says where it fails, else nothing."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr)[-4_000:] if done.returncode else ""


def check(folder: Path) -> None:
    """Assert that all files of a folder are clean, and load."""
    names = sorted(path.name for path in folder.glob("*.py"))
    rules = ("--select=E4,E7,E9,F,I,RUF100,UP", "--target-version=py311")

    assert not run(folder, "-m", "ruff", "check", "--isolated", "--no-cache", *rules, ".")
    assert not run(folder, "-m", "ruff", "format", "--isolated", "--no-cache", "--check", ".")
    assert not run(folder, "-c", LOAD, text="\n".join(name[:-3] for name in names))


def test_kites_are_clean(tmp_path: Path) -> None:
    """Long descriptions are wrapped, whatever stands in them."""
    about = 'It "flies" as \\ long as there\'s wind, which C:\\temp may say: ' + "lift & drag " * 9
    fields = tuple(
        FieldIR(json_name=name, type=Scalar(kind="string"), description=about)
        for name in ("sail", "a/b")
    )
    kite = KITES.types[0].model_copy(update={"description": about, "fields": fields})
    ir = KITES.model_copy(update={"types": (kite,)})
    for profile in PROFILES:
        source = write(ir, profile)
        assert max(map(len, source.splitlines())) <= 88, profile
        (tmp_path / f"long_{profile}.py").write_text(source, "utf-8")
        (tmp_path / f"kites_{profile}.py").write_text(write(KITES, profile), "utf-8")

    check(tmp_path)
