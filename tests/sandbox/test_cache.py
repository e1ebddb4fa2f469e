"""The cache of results: what is put is found again, and nothing else is ever found."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_regen.cache import VARIABLE, Cache


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of one's own, who has no key yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: folder)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    return folder


@pytest.fixture
def root(home: Path) -> Path:
    """The folder of the cache of a project, which lies beside the home."""
    return home.with_name("project") / ".regen" / "cache"


def test_what_is_put_is_found(root: Path) -> None:
    """Any JSON value, by any key; in another section or by another key there is nothing."""
    key, value = "kéy/../\n", {"ü": [1, 2.5, None, {"": False}]}
    Cache(root).put("doctests", key, value)

    assert Cache(root).get("doctests", key) == value
    assert Cache(root).get("instances", key) is None
    assert Cache(root).get("doctests", key + "x") is None


def put_in(content: bytes | Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """Return a harm: other bytes."""

    def harm(path: Path) -> None:
        path.write_bytes(content if isinstance(content, bytes) else content(path.read_bytes()))

    return harm


def instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Return a harm: something else in its place."""

    def harm(path: Path) -> None:
        path.rename(path.with_name("elsewhere"))
        make(path)

    return harm


lead_away = instead(lambda path: path.symlink_to("elsewhere"))
HARMS: list[Callable[[Path], object]] = [
    put_in(lambda text: text[: len(text) // 2]),
    put_in(b"0" * 64 + b'\n{"passed": true}'),
    put_in(lambda text: text.replace(b"false", b"true")),
    put_in(b"0" * (17 << 20)),
    lambda path: path.rename(path.with_name("0" * 64 + ".json")),
    lead_away,
    lambda path: lead_away(path.parent),
    instead(Path.mkdir),
]


@pytest.mark.parametrize("harm", HARMS)
def test_a_harmed_entry_is_a_miss(root: Path, harm: Callable[[Path], None]) -> None:
    """Nothing is read that was not put there by this user for this key; putting mends it."""
    cache = Cache(root)
    cache.put("doctests", "key", {"passed": False})
    [entry] = root.glob("*/*.json")
    harm(entry)

    sections = ("doctests", "instances")
    found = [cache.get(name, key) for name in sections for key in ("key", "other")]

    assert found == [None] * 4
    cache.put("doctests", "key", {"passed": True})  # no error


def test_machines_share_results_by_a_secret(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same ``REGEN_CACHE_KEY`` results of another machine count; a short one is none."""
    monkeypatch.setenv(VARIABLE, "a secret of the CI that is long enough")
    Cache(root).put("doctests", "key", "kept")
    assert Cache(root).get("doctests", "key") == "kept"

    for other in ("another secret of the CI, long enough", "short", ""):
        monkeypatch.setenv(VARIABLE, other)
        assert Cache(root).get("doctests", "key") is None


@pytest.mark.parametrize(
    "harm",
    [Path.unlink, lambda key: key.chmod(0o644), put_in(b""), lead_away],
    ids=["another user", "readable", "empty", "link"],
)
def test_a_key_that_others_may_know_is_none(
    root: Path, home: Path, harm: Callable[[Path], object]
) -> None:
    """A repository brings no results that count, nor does a key that others may have read."""
    Cache(root).put("doctests", "key", "kept")
    harm(home / ".cache" / "pytest-regen" / "cache.key")

    assert Cache(root).get("doctests", "key") is None


def test_a_key_inside_the_project_is_none(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the home is the project, whoever made the project could have made the key."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "project" / "home"))

    Cache(root).put("doctests", "key", "kept")

    assert Cache(root).get("doctests", "key") is None


def test_what_is_older_than_a_month_goes(root: Path) -> None:
    """Entries of long ago and halves that killed processes left; what is newer stays."""
    cache = Cache(root)
    for name in ("old", "new"):
        cache.put("doctests", name, name)
    half = cache._path("doctests", "x").with_suffix(".00112233.tmp")
    half.write_bytes(b"x")
    foreign = root / "doctests" / "notes.txt"
    foreign.write_bytes(b"x")
    for path in (half, foreign, cache._path("doctests", "old")):
        os.utime(path, (0, 0))

    Cache(root).put("doctests", "last", 1)

    assert [cache.get("doctests", name) for name in ("old", "new")] == [None, "new"]
    assert foreign.exists()
    assert not half.exists()


def test_processes_make_one_key(root: Path, home: Path) -> None:
    """Workers that start at the same moment end up with the same key."""
    code = (
        "import sys; from pathlib import Path; from pytest_regen.cache import Cache;"
        "Cache(Path(sys.argv[1])).put('doctests', sys.argv[2], sys.argv[2])"
    )
    environ = {**os.environ, "HOME": str(home)}
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(root), str(number)], env=environ)
        for number in range(4)
    ]
    assert [process.wait() for process in running] == [0] * 4

    assert [Cache(root).get("doctests", str(number)) for number in range(4)] == ["0", "1", "2", "3"]
    assert [path.name for path in (home / ".cache" / "pytest-regen").iterdir()] == ["cache.key"]


@pytest.mark.parametrize("what", ["file", "link", "gitignore"])
def test_where_nothing_can_be_kept_there_is_no_cache(root: Path, what: str) -> None:
    """A folder that is a file, a link or full of traps is no error, and nothing outside changes."""
    outside = root.parents[2] / "outside"
    outside.mkdir()
    root.parent.mkdir(parents=True)
    if what == "file":
        root.write_bytes(b"")
    elif what == "link":
        root.symlink_to(outside)
    else:
        root.mkdir()
        (root / ".gitignore").symlink_to(outside / "made")

    Cache(root).put("doctests", "key", "kept")

    assert [*outside.iterdir()] == []
    assert Cache(root).get("doctests", "key") == ("kept" if what == "gitignore" else None)
