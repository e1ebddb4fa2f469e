"""Folder and file names: safe on every system, no two operations in one folder, readable."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_store import filled_store

from pytest_regen.files import safe_file_name, store_slug
from pytest_regen.stores import find_stores

METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"])
PATHS = st.text("aAb1_-./{}~% :\\é\n", max_size=12).map(lambda text: "/" + text) | st.text()
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?\Z")


def is_safe(name: str) -> bool:
    """Return whether every system takes ``name`` as one file name, and a shell needs no quotes."""
    return (
        re.fullmatch(r"[A-Za-z0-9._~-]{1,120}", name) is not None
        and name[0] not in "-.~"
        and name[-1] != "."
        and RESERVED.match(name) is None
    )


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/rest/v1.1/time-cards", r"GET_rest_v1\.1_time-cards"),
        ("/v1/projects/{projectId}", "GET_v1_projects_projectId-[0-9a-f]{8}"),
        ("/" + "long/" * 100, "GET_long_long_.*-[0-9a-f]{8}"),
    ],
)
def test_a_folder_is_named_as_its_path(path: str, slug: str) -> None:
    """Readable as it is; what is ambiguous, unsafe or long begins so and ends in a hash."""
    assert re.fullmatch(slug, store_slug("GET", path))


@given(METHODS, PATHS, METHODS, PATHS)
def test_every_operation_has_a_safe_folder_of_its_own(
    method: str, path: str, other_method: str, other_path: str
) -> None:
    """No separator, no reserved name, bounded length; different even where case does not count."""
    slug, other = store_slug(method, path), store_slug(other_method, other_path)

    assert is_safe(slug)
    assert (slug.lower() == other.lower()) == ((method, path) == (other_method, other_path))


def test_a_path_that_ends_like_a_hash_gets_its_own() -> None:
    """The slug of one path cannot be written down as another path."""
    hashed = store_slug("GET", "/a_b")
    written_down = "/a/" + hashed.removeprefix("GET_a_")

    assert "GET" + written_down.replace("/", "_") == hashed
    assert store_slug("GET", written_down) != hashed


@given(st.text())
def test_every_file_name_is_safe(type_name: str) -> None:
    """Whatever a type is called, its name in a file name is safe."""
    assert is_safe(safe_file_name(type_name) + ".cs")


def test_globs_find_stores(tmp_path: Path) -> None:
    """Sorted, each once, only folders with artifacts; a glob without a store is told."""
    second = filled_store(tmp_path / "generated" / "b").path
    first = filled_store(tmp_path / "generated" / "a").path
    (tmp_path / "generated" / "notes").mkdir()
    (tmp_path / "generated" / "readme.md").touch()

    found = find_stores(
        ["generated/*", "**/a", "generated/b/", str(first), "./generated/../generated/a", "nope/*"],
        tmp_path,
    )

    assert found.stores == (first, second)
    assert found.unmatched == ("nope/*",)
