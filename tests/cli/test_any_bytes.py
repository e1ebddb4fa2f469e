"""Whatever an artifact holds, commands and pytest answer without a traceback."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from command_line import command
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import scaled
from store_factory import make_store

from pytest_regen.strict_json import as_json

ARTIFACTS = ("ir.json", "prompts.json", "pages.json", "ProjectDataObject.cs")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["version", "pages", "types", "endpoint", "language", "page", "fields"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


def _encoded(value: Any) -> bytes:
    try:
        return as_json(value)
    except ValueError:
        return b"{}"


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good store to copy."""
    return make_store(tmp_path_factory.mktemp("pattern") / "store").path


@pytest.mark.parametrize("artifact", ARTIFACTS)
@settings(max_examples=scaled(12))
@given(content=st.binary(max_size=200) | json_values.map(_encoded))
def test_any_content_is_answered(pattern: Path, artifact: str, content: bytes) -> None:
    """An exit code as designed, and a message; never an exception."""
    with TemporaryDirectory() as folder:
        store = Path(folder, "store")
        shutil.copytree(pattern, store)
        store.joinpath(artifact).write_bytes(content)

        for words in (("validate", store), ("regenerate", store, "--yes", "--dry-run")):
            ran = command(*words)
            assert ran.code in {0, 1, 2}
            assert (ran.code == 2) == ran.err.startswith("error: ")
