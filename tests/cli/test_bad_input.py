"""Files that cannot serve: one message with value, reason and next step; never a traceback."""

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Ran, command, process

KITES = "GET /kites"


def refused(ran: Ran, code: int = 2) -> str:
    """Return the message of a command that was refused as it should be."""
    assert (ran.code, ran.out) == (code, ""), ran
    assert ran.err.startswith("error: ")
    assert "  next: " in ran.told
    assert "Traceback" not in ran.told
    return ran.err


def test_missing_and_unreadable_descriptions() -> None:
    """A path that is not there, or is a folder."""
    assert "nowhere.yaml" in refused(command("generate", "nowhere.yaml", KITES))
    assert "there is no store at ." in refused(command("generate", ".", KITES))


def test_errors_as_json_are_one_document() -> None:
    """With --json the error is on stdout as JSON, and on stderr for people."""
    ran = command("generate", "nowhere.yaml", KITES, "--json")

    assert ran.code == 2
    assert set(ran.json) == {"error", "what", "why", "next"}
    assert ran.err.startswith("error: ")


def test_a_folder_without_a_store() -> None:
    """The message says how to get one."""
    for words in (("validate", "."), ("regenerate", "."), ("history", "nowhere"), ("adopt", ".")):
        assert "pytest-regen generate" in refused(command(*words))


def cut(data: bytes) -> bytes:
    """Return the first half."""
    return data[: len(data) // 2]


def without_last_page(data: bytes) -> bytes:
    """Return pages.json with a page taken out by hand."""
    envelope = json.loads(data)
    del envelope["pages"][-1]
    return json.dumps(envelope).encode()


def twice(data: bytes) -> bytes:
    """Return pages.json with a page in it twice."""
    envelope = json.loads(data)
    envelope["pages"].append(envelope["pages"][0])
    return json.dumps(envelope).encode()


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "pages cut": ("pages.json", cut),
    "pages twice": ("pages.json", twice),
    "prompts cut": ("prompts.json", cut),
    "ir without types": ("ir.json", lambda _data: b'{"version": 1}'),
    "source binary": ("ProjectDataObject.cs", lambda _data: b"\xff\xfe\x00\xd8"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_artifacts_are_named(good: Path, name: str) -> None:
    """The file is named, and nothing is changed."""
    file, damage = DAMAGE[name]
    good.joinpath(file).write_bytes(damage(good.joinpath(file).read_bytes()))
    before = {path: path.read_bytes() for path in good.iterdir() if path.is_file()}

    assert file in refused(command("validate", good))
    assert {path: path.read_bytes() for path in good.iterdir() if path.is_file()} == before


def test_a_page_taken_out_by_hand_is_missed(good: Path) -> None:
    """The store still loads; the type that lacks a page has an error, and is mended by it."""
    path = good / "pages.json"
    path.write_bytes(without_last_page(path.read_bytes()))

    ran = command("validate", good, "--json")

    assert ran.code == 1
    state = next(one for one in ran.json["stores"][0]["types"] if one["name"] == "State")
    assert state["errors"]
    words = ("--from-errors", "--provider", "plugin_answers:Good")
    assert command("regenerate", good, *words).code == 0


def test_settings_that_are_wrong_are_told(good: Path, here: Path) -> None:
    """The file, the key and the value are named."""
    here.joinpath("pyproject.toml").write_text("[tool.pytest-regen]\nattempts = 'many'\n", "utf-8")
    assert "attempts = 'many'" in refused(command("validate", good))

    here.joinpath("pyproject.toml").write_text("[tool", "utf-8")
    assert "pyproject.toml cannot be read" in refused(command("validate", good))


def as_nobody(store: Path, *words: object) -> Ran:
    """Run a command as a user who owns nothing."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    # The interpreter and the package may lie where only root may go: run once before.
    code = (
        "import contextlib, io, os, sys\n"
        "import plugin_answers, filelock\n"
        "from pytest_regen.cli.app import main\n"
        "for first in (['validate', '--no-write'], ['regenerate', '--from-errors', '--dry-run']):\n"
        "    with contextlib.suppress(SystemExit), \\\n"
        "         contextlib.redirect_stdout(io.StringIO()), \\\n"
        "         contextlib.redirect_stderr(io.StringIO()):\n"
        "        main([*first, sys.argv[1]])\n"
        "os.setgroups([])\n"
        "os.setgid(65534)\n"
        "os.setuid(65534)\n"
        "main(sys.argv[2:])\n"
    )
    path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", code, str(store), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def let_everybody_read(tmp_path: Path) -> None:
    """Let anybody into the folder of the test, to read."""
    for path in (*tmp_path.rglob("*"), tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)


@pytest.fixture
def readable(broken: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The store, in a folder of its own: whoever starts pytest closes pytest's folder to others."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(here, folder, dirs_exist_ok=True)
        let_everybody_read(Path(folder))
        monkeypatch.chdir(folder)
        yield broken
        monkeypatch.chdir(here)


def test_a_folder_that_cannot_be_written(readable: Path) -> None:
    """``validate`` notes it and gives its verdict; what has to write is refused."""
    broken = readable
    before = {path: path.read_bytes() for path in broken.iterdir() if path.is_file()}

    verdict = as_nobody(broken, "validate", broken)
    assert verdict.code == 1
    assert verdict.told.startswith(f"note: the summary in {broken / 'ir.json'} was not updated: ")
    assert as_nobody(broken, "validate", "--no-write", broken).told.startswith(str(broken))

    words = ("--from-errors", "--provider", "plugin_answers:Good")
    message = refused(as_nobody(broken, "regenerate", broken, *words))
    assert str(broken) in message
    assert {path: path.read_bytes() for path in broken.iterdir() if path.is_file()} == before


NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


def limit_files(size: int) -> Callable[[], None]:
    """Return what makes every file end after ``size`` bytes, as a full disk does.

    Run it with ``NO_BYTECODE``: bytecode cut by the limit would break every later import.
    """
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_loses_nothing(broken: Path) -> None:
    """The write is refused with the reason; the store stays as it was, and heals with room."""
    before = {path: path.read_bytes() for path in broken.iterdir() if path.is_file()}
    words = ("regenerate", broken, "--from-errors", "--provider", "plugin_answers:Good")

    ran = process(*words, env=NO_BYTECODE, preexec_fn=limit_files(1000))

    refused(ran)
    assert {path: path.read_bytes() for path in broken.iterdir() if path.is_file()} == before
    assert process(*words).code == 0
