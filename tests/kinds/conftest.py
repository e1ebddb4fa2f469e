"""Which laws of the engine are held for every kind in the sweep alone: they start processes."""

import pytest

_HELD_FOR_ONE = (
    "test_a_kill_at_any_write_leaves_the_old_or_the_new",
    "test_pytest_heals_and_replays_offline_with_workers",
)
"""The engine does this alike for all kinds: it is always held for translations."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the others before pytest deselects."""
    for item in items:
        if item.path.name == "test_conformance.py" and item.path.parent.name == "kinds":
            name, owner = getattr(item, "originalname", item.name), item.getparent(pytest.Class)
            if name in _HELD_FOR_ONE and owner and owner.name != "TestTranslations":
                item.add_marker(pytest.mark.sweep)
