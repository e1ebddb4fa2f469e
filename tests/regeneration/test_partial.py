"""The library's way in: what the requirement calls ``partial_regenerate``."""

from pathlib import Path

import pytest
from store_factory import make_store

from pytest_regen import DryRunProvider, RegenStore, partial_regenerate
from pytest_regen.errors import UsageError


def test_no_attempt_at_all_is_refused(tmp_path: Path) -> None:
    """The first reply counts as an attempt."""
    path = make_store(tmp_path / "store").path
    with pytest.raises(UsageError, match="max_retries is 0"):
        partial_regenerate(path, provider=DryRunProvider(), max_retries=0)


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
    assert RegenStore.open(path).source == accepted.cs_code != before
    assert accepted.cs_path == RegenStore.open(path).source_path
    assert accepted.validation.has_errors
