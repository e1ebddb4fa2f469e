"""Valid and invalid JSON instances of the types of a store, as its API description allows them.

``valid``, ``invalid`` and ``from_schema`` are hypothesis strategies for tests of one's own. The
gate takes ``instances_of``: plain values, the same every time.
"""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.strategies.instances import (
        Instances,
        instances_key,
        instances_of,
        instances_of_store,
    )
    from pytest_regen.strategies.public import from_schema, invalid, valid
    from pytest_regen.strategies.violations import Skipped, Violation
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "Instances",
    "Skipped",
    "Violation",
    "from_schema",
    "instances_key",
    "instances_of",
    "instances_of_store",
    "invalid",
    "valid",
]
