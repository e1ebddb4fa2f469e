"""Generate, regenerate and heal stores: plan, ask, judge, keep the better, stop with a reason.

Names are resolved on first use: whoever only validates asks no model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.regeneration.generate import generate_store
    from pytest_regen.regeneration.planning import StorePlan, plan_store
    from pytest_regen.regeneration.policies import fixable, pages_at_fault
    from pytest_regen.regeneration.regenerate import (
        heal_store,
        heal_type,
        merge_results,
        partial_regenerate,
        regenerate_pages,
        summary_of,
        targets,
        write_summary,
    )
    from pytest_regen.regeneration.restore import (
        Rebuilt,
        Taken,
        adopt_edits,
        edited_types,
        rebuild_source,
        restore_outputs,
    )
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
    "Feedback",
    "GenerateResult",
    "HealResult",
    "PartialRegenResult",
    "Progress",
    "Rebuilt",
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
    "merge_results",
    "pages_at_fault",
    "partial_regenerate",
    "plan_store",
    "rebuild_source",
    "regenerate_pages",
    "restore_outputs",
    "summary_of",
    "targets",
    "write_summary",
]

_HOMES = {
    "Feedback": "values",
    "GenerateResult": "values",
    "HealResult": "values",
    "PartialRegenResult": "values",
    "Progress": "values",
    "Rebuilt": "restore",
    "StopReason": "values",
    "StorePlan": "planning",
    "Taken": "restore",
    "TurnSettings": "values",
    "adopt_edits": "restore",
    "edited_types": "restore",
    "fixable": "policies",
    "generate_store": "generate",
    "heal_store": "regenerate",
    "heal_type": "regenerate",
    "merge_results": "regenerate",
    "pages_at_fault": "policies",
    "partial_regenerate": "regenerate",
    "plan_store": "planning",
    "rebuild_source": "restore",
    "regenerate_pages": "regenerate",
    "restore_outputs": "restore",
    "summary_of": "regenerate",
    "targets": "regenerate",
    "write_summary": "regenerate",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import the module that holds ``name``."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
