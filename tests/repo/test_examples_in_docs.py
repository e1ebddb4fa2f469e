"""The Python on pages of the docs that have no test of their own runs as it stands there."""

from pathlib import Path

import pytest
from pages import blocks
from store_factory import make_store


@pytest.mark.parametrize("page", ["docs/sources.md", "docs/stores.md"])
def test_the_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, in a folder with a store."""
    make_store(tmp_path / "generated" / "GET_v1_projects")
    monkeypatch.chdir(tmp_path)

    exec("\n".join(blocks(page, "python")), {})
