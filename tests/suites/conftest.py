"""A store without a fault, written once for all suites."""

import pytest
from served_stores import SMALL_OPERATION, example_store, served

from pytest_regen.stores import RegenStore


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> RegenStore:
    """A small store of several pages without a fault; tests change copies of it."""
    with served() as server:
        out = tmp_path_factory.mktemp("good")
        return example_store(server, out, operation=SMALL_OPERATION, fields_per_page=20)
