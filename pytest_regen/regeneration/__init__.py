"""Generate, regenerate and heal: plan, ask, validate, keep the better, stop with a reason."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.regeneration.generate import GenerateResult as GenerateResult
    from pytest_regen.regeneration.generate import generate_store as generate_store
    from pytest_regen.regeneration.generate import generate_stores as generate_stores
    from pytest_regen.regeneration.regenerate import PartialRegenResult as PartialRegenResult
    from pytest_regen.regeneration.regenerate import heal_store as heal_store
    from pytest_regen.regeneration.regenerate import heal_stores as heal_stores
    from pytest_regen.regeneration.regenerate import partial_regenerate as partial_regenerate
    from pytest_regen.regeneration.values import HealResult as HealResult
    from pytest_regen.regeneration.values import StopReason as StopReason
    from pytest_regen.regeneration.values import TurnSettings as TurnSettings
else:
    __getattr__, __dir__ = lazy(__name__)
