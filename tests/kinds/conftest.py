"""Which laws of the engine are held for every kind in the sweep alone: they start processes."""

import pytest

_HELD_BY = {
    "test_a_kill_at_any_write_leaves_the_old_or_the_new": {"TestTranslations"},
    "test_pytest_heals_and_replays_offline_with_workers": {"TestTranslations"},
}
"""The engine does this alike for all kinds: these are the ones it is always held for."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the others before pytest deselects."""
    for item in items:
        if item.path.name == "test_conformance.py" and item.path.parent.name == "kinds":
            name, owner = getattr(item, "originalname", item.name), item.getparent(pytest.Class)
            if name in _HELD_BY and owner and owner.name not in _HELD_BY[name]:
                item.add_marker(pytest.mark.sweep)
