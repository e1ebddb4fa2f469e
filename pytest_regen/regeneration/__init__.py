"""Generate, regenerate and heal: plan, ask, validate, keep the better, stop with a reason."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.regeneration.generate import GenerateResult, generate_store, generate_stores
    from pytest_regen.regeneration.planning import StoreOptions, StorePlan, plan_store
    from pytest_regen.regeneration.policies import fixable, pages_at_fault
    from pytest_regen.regeneration.regenerate import (
        PartialRegenResult,
        heal_store,
        heal_stores,
        partial_regenerate,
    )
    from pytest_regen.regeneration.sharing import Sharing
    from pytest_regen.regeneration.store_edits import summary_of, write_summary
    from pytest_regen.regeneration.values import (
        HealResult,
        Progress,
        StopReason,
        TurnSettings,
    )
    from pytest_regen.validation.issues import Feedback
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "Feedback",
    "GenerateResult",
    "HealResult",
    "PartialRegenResult",
    "Progress",
    "Sharing",
    "StopReason",
    "StoreOptions",
    "StorePlan",
    "TurnSettings",
    "fixable",
    "generate_store",
    "generate_stores",
    "heal_store",
    "heal_stores",
    "pages_at_fault",
    "partial_regenerate",
    "plan_store",
    "summary_of",
    "write_summary",
]
