"""Generate, regenerate and heal: plan, ask, validate, keep the better, stop with a reason."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.regeneration.generate import GenerateResult, generate_store, generate_stores
    from pytest_regen.regeneration.planning import StorePlan, plan_store
    from pytest_regen.regeneration.policies import fixable, pages_at_fault
    from pytest_regen.regeneration.regenerate import (
        PartialRegenResult,
        heal_store,
        heal_stores,
        heal_type,
        heal_type_steps,
        merge_results,
        partial_regenerate,
        summary_of,
        write_summary,
    )
    from pytest_regen.regeneration.restore import (
        adopt_edits,
        edited_types,
        rebuild_source,
        restore_outputs,
    )
    from pytest_regen.regeneration.sharing import Sharing
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
    "StorePlan",
    "TurnSettings",
    "adopt_edits",
    "edited_types",
    "fixable",
    "generate_store",
    "generate_stores",
    "heal_store",
    "heal_stores",
    "heal_type",
    "heal_type_steps",
    "merge_results",
    "pages_at_fault",
    "partial_regenerate",
    "plan_store",
    "rebuild_source",
    "restore_outputs",
    "summary_of",
    "write_summary",
]
