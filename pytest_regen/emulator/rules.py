"""What the real API refuses, refused here."""

from collections.abc import Mapping
from typing import Any

from pytest_regen.emulator.models import Model, find_model
from pytest_regen.emulator.wire import ApiError

__all__ = ["check_request"]


def check_request(body: Mapping[str, Any], *, version: str, batched: bool = False) -> Model:
    """Return the model that ``body`` names."""
    for name in ("max_tokens", "messages", "model"):
        if name not in body:
            raise ApiError(f"{name}: Field required")
    model = find_model(body["model"])
    if model is None:
        raise ApiError(f"model: {body['model']}", status=404)
    return model
