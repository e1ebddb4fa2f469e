"""Valid and invalid JSON instances of the types of a store, as its API description allows them.

``valid``, ``invalid`` and ``from_schema`` are hypothesis strategies for tests of one's own. The
gate takes ``instances_of``: plain values, the same every time.
"""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.strategies.instances import Instances as Instances
    from pytest_regen.strategies.instances import instances_key as instances_key
    from pytest_regen.strategies.instances import instances_of as instances_of
    from pytest_regen.strategies.instances import instances_of_store as instances_of_store
    from pytest_regen.strategies.public import from_schema as from_schema
    from pytest_regen.strategies.public import invalid as invalid
    from pytest_regen.strategies.public import valid as valid
    from pytest_regen.strategies.violations import Skipped as Skipped
    from pytest_regen.strategies.violations import Violation as Violation
else:
    __getattr__, __dir__ = lazy(__name__)
