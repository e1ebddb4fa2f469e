"""Generate, regenerate and heal stores: plan, ask, judge, keep the better, stop with a reason."""

from pytest_regen.regeneration.budget import Budget
from pytest_regen.regeneration.generate import generate_store
from pytest_regen.regeneration.heal import heal_type, regenerate_pages
from pytest_regen.regeneration.judge import fixable, pages_at_fault
from pytest_regen.regeneration.partial import heal_store, partial_regenerate, targets
from pytest_regen.regeneration.planning import StorePlan, plan_store
from pytest_regen.regeneration.restore import Taken, adopt_edits, edited_types, restore_outputs
from pytest_regen.regeneration.summary import merged, summary_of, write_summary
from pytest_regen.regeneration.values import (
    Feedback,
    GenerateResult,
    HealResult,
    PartialRegenResult,
    Progress,
    StopReason,
    TurnSettings,
)

__all__ = [
    "Budget",
    "Feedback",
    "GenerateResult",
    "HealResult",
    "PartialRegenResult",
    "Progress",
    "StopReason",
    "StorePlan",
    "Taken",
    "TurnSettings",
    "adopt_edits",
    "edited_types",
    "fixable",
    "generate_store",
    "heal_store",
    "heal_type",
    "merged",
    "pages_at_fault",
    "partial_regenerate",
    "plan_store",
    "regenerate_pages",
    "restore_outputs",
    "summary_of",
    "targets",
    "write_summary",
]
