"""A model for `--provider served_model:reply`: writes at once."""

import json

from subject_flow import writing


def reply(_: list[dict[str, str]]) -> str:
    """Return a subject line."""
    return json.dumps(writing())
