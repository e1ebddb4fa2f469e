"""What we rely on in vcrpy, on the installed version and on others that are allowed."""

import inspect
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from vcr import VCR
from vcr.cassette import Cassette
from vcr.patch import CassettePatcherBuilder
from vcr.persisters import filesystem
from vcr.request import Request
from yaml.constructor import SafeConstructor

from pytest_regen.cassettes.clients.vcr.patching import _builder, _PatchTarget, _skipped
from pytest_regen.cassettes.clients.vcr.persisting import _base_loader
from pytest_regen.cassettes.clients.vcr.watching import _WatchedCassette

ROOT = Path(__file__).parents[2]
OLDEST = "9.4.2"


def test_one_room_is_the_only_door() -> None:
    """No file outside it names the package."""
    folder = ROOT / "pytest_regen"
    named = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if any(line.startswith(("import vcr", "from vcr")) for line in
               map(str.strip, path.read_text("utf-8").splitlines()))
    ]  # fmt: skip

    assert {name.rpartition("/")[0] for name in named} == {"cassettes/clients/vcr"}


def test_the_methods_we_override_are_there() -> None:
    """Each is called by vcrpy's own stubs; one renamed would be silently passed by."""
    for cls in (_PatchTarget, _WatchedCassette):
        for name, value in vars(cls).items():
            ours = inspect.isfunction(value) or isinstance(value, property)
            if ours and name not in {"__init__", "__contains__"}:
                assert hasattr(Cassette, name), name


def test_the_arguments_we_give_are_taken() -> None:
    """What is given to a cassette, and what a configured VCR hands to one."""
    taken = inspect.signature(Cassette.__init__).parameters

    assert {"path", "record_mode", "persister", "serializer"} <= set(taken)
    merged = VCR().get_merged_config(path="x")
    assert set(merged) - {"path_transformer", "func_path_generator", "record_on_exception"} <= {
        *taken
    }
    assert hasattr(filesystem, "CassetteNotFoundError")


def test_patches_are_made_by_the_methods_that_are_skipped() -> None:
    """Of each client by one; one renamed would patch a client that was to be left alone."""
    makers = {name for name in vars(CassettePatcherBuilder) if name in _skipped()}

    assert makers >= {"_aiohttp", "_httplib2", "_tornado"}.intersection(_skipped())
    assert makers & {"_httpx", "_httpcore"}
    assert all(not list(getattr(_builder(), name)()) for name in makers)


def test_what_reads_its_files_is_there() -> None:
    """A loader that knows its tags and runs no code, and what makes a request of a recording."""
    assert issubclass(_base_loader(), SafeConstructor)
    assert callable(Request._from_dict)


@pytest.mark.sweep
@pytest.mark.parametrize("version", [f"=={OLDEST}", "<10"], ids=["oldest", "newest"])
def test_other_versions_keep_the_contract(tmp_path: Path, version: str) -> None:
    """The room's tests pass on the oldest and on the newest release that is allowed."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True, system_site_packages=False)
    python = home / "bin" / "python"
    if not python.exists():
        pytest.skip("a virtual environment is laid out otherwise here")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    [site] = (home / "lib").glob("python*/site-packages")
    (site / "project.pth").write_text("\n".join([*ours, str(ROOT)]), "utf-8")
    installing = [str(python), "-m", "pip", "install", "-q", "--no-deps", "--ignore-installed"]
    done = subprocess.run(
        [*installing, f"vcrpy{version}"], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"vcrpy{version} could not be installed: {done.stderr.strip()[-200:]}")

    tests = ["tests/cassettes/test_vcrpy_contract.py", "tests/cassettes/test_running.py"]
    words = [str(python), "-m", "pytest", "-q", "-m", "not sweep", "-p", "no:cacheprovider"]
    result = subprocess.run([*words, *tests], cwd=ROOT, check=False, capture_output=True, text=True)

    assert result.returncode == 0, result.stdout[-2000:]
