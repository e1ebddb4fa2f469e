"""The cache of results: what is put is found again, and nothing else is ever found."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_regen import cache as cache_module
from pytest_regen.cache import VARIABLE, Cache

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user of one's own, who has no key yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: folder)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    cache_module._secret.cache_clear()
    yield folder
    cache_module._secret.cache_clear()


@pytest.fixture
def root(home: Path) -> Path:
    """The folder of the cache of a project, which lies beside the home."""
    return home.with_name("project") / ".regen" / "cache"


def entry(root: Path) -> Path:
    """Return the only entry."""
    [path] = root.glob("*/*.json")
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(value=JSON, key=st.text())
def test_what_is_put_is_found(root: Path, value: Any, key: str) -> None:
    """Any JSON value, by any key; in another section or by another key there is nothing."""
    Cache(root).put("doctests", key, value)

    assert Cache(root).get("doctests", key) == value
    assert Cache(root).get("instances", key) is None
    # Other instances may have put any short key.
    assert Cache(root).get("doctests", key + "x" * 40) is None


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
    put_in(b'{"passed": true}'),
    put_in(b"0" * 64 + b'\n{"passed": true}'),
    put_in(lambda text: text.replace(b"false", b"true")),
    put_in(b"0" * (17 << 20)),
    lambda path: path.rename(path.with_name("0" * 64 + ".json")),
    lambda path: path.parent.rename(path.parents[1] / "instances"),
    lead_away,
    lambda path: lead_away(path.parent),
    instead(Path.mkdir),
]


@pytest.mark.parametrize("harm", HARMS)
def test_a_harmed_entry_is_a_miss(root: Path, harm: Callable[[Path], None]) -> None:
    """Nothing is read that was not put there by this user for this key; putting mends it."""
    cache = Cache(root)
    cache.put("doctests", "key", {"passed": False})
    harm(entry(root))

    sections = ("doctests", "instances")
    found = [cache.get(name, key) for name in sections for key in ("key", "other")]

    assert found == [None] * 4
    cache.put("doctests", "key", {"passed": True})  # no error


def test_an_entry_of_another_user_is_a_miss(root: Path, home: Path) -> None:
    """A repository that comes with results brings none that count."""
    Cache(root).put("doctests", "key", "kept")
    (home / ".cache" / "pytest-regen" / "cache.key").unlink()
    cache_module._secret.cache_clear()

    assert Cache(root).get("doctests", "key") is None


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
    [lambda key: key.chmod(0o644), put_in(b""), lead_away],
    ids=["readable", "empty", "link"],
)
def test_a_key_that_others_may_know_is_none(
    root: Path, home: Path, harm: Callable[[Path], object]
) -> None:
    """A key that others can read, an empty one or a link counts as no key: nothing is kept."""
    Cache(root).put("doctests", "key", "kept")
    harm(home / ".cache" / "pytest-regen" / "cache.key")
    cache_module._secret.cache_clear()

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


def test_threads_share_it(root: Path) -> None:
    """Whoever reads while others write finds a whole value or none."""
    wrong: list[Any] = []

    def work(number: int) -> None:
        cache = Cache(root)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            cache.put("doctests", "key", [number] * 1000)
            found = cache.get("doctests", "key")
            if found is not None and (len(found) != 1000 or len({*found}) != 1):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong
    assert [path.suffix for path in root.glob("*/*")] == [".json"]


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
