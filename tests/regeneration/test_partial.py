"""The library's way in: what the requirement calls ``partial_regenerate``."""

from pathlib import Path

import pytest
from store_factory import make_store

from pytest_regen import DryRunProvider, RegenStore, partial_regenerate
from pytest_regen.errors import UsageError


@pytest.mark.parametrize("name", ["attempts", "max_retries"])
def test_no_attempt_at_all_is_refused(tmp_path: Path, name: str) -> None:
    """The first reply counts as an attempt; both names mean the same, and exclude each other."""
    path = make_store(tmp_path / "store").path
    with pytest.raises(TypeError, match="not both"):
        partial_regenerate(path, provider=DryRunProvider(), attempts=1, max_retries=1)
    with pytest.raises(UsageError, match="attempts is 0"):
        partial_regenerate(path, provider=DryRunProvider(), **{name: 0})  # type: ignore[arg-type]


def test_a_dry_run_provider_is_an_ordinary_provider(tmp_path: Path) -> None:
    """Its placeholder is refused as worse, and written where any output is accepted."""
    path = make_store(tmp_path / "store").path
    before = RegenStore.open(path).source
    type_name = RegenStore.open(path).type_names[0]

    refused = partial_regenerate(path, [type_name], provider=DryRunProvider())
    assert RegenStore.open(path).source == before
    assert refused.rejected
    accepted = partial_regenerate(path, [type_name], provider=DryRunProvider(), accept_any=True)

    assert accepted.regenerated
    assert accepted.source == accepted.cs_code != before
    assert accepted.cs_path == RegenStore.open(path).source_path
    assert accepted.validation.has_errors
