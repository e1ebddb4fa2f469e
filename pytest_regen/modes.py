"""Words that settings are chosen from, each list spelt once, and what decides what they mean.

Imports nothing from the package and nothing heavy: the plugin offers them to every run of pytest.
"""

import os
from typing import Literal, get_args

RecordMode = Literal["none", "once", "new_episodes", "all", "rewrite"]
"""``none`` replays and sends nothing. ``once`` records where there is no file, else replays.
``new_episodes`` replays what is recorded and records the rest. ``all`` sends everything; what is
not sent again stays. ``rewrite`` sends everything and keeps nothing of the old file."""

RECORD_MODES: tuple[RecordMode, ...] = get_args(RecordMode)

FindingPolicy = Literal["fail", "warn", "ignore"]
"""What becomes of a finding: the test fails, the summary reports it, or nothing."""

POLICIES: tuple[FindingPolicy, ...] = get_args(FindingPolicy)

StalePolicy = Literal["auto", "fail", "warn", "ignore"]
"""What becomes of a type that is older than its document; ``auto`` fails in CI, else warns."""

STALE_POLICIES: tuple[StalePolicy, ...] = get_args(StalePolicy)

BehaviourPolicy = Literal["auto", "off"]
"""Whether generated code is run; ``auto``: where what it takes is there."""

BEHAVIOUR_POLICIES: tuple[BehaviourPolicy, ...] = get_args(BehaviourPolicy)

BEHAVIOUR_CODES = frozenset({"ROUND_TRIP", "ACCEPTS_INVALID"})
"""What running code finds; where both are ignored nothing is run."""

AnnotationPolicy = Literal["auto", "never", "always"]
"""Whether what is wrong is printed as GitHub reads it; ``auto``: where GitHub Actions runs it."""

ANNOTATION_POLICIES: tuple[AnnotationPolicy, ...] = get_args(AnnotationPolicy)

SandboxLevel = Literal["bwrap", "namespace", "process"]
"""How far code that a model wrote is kept apart; strongest first."""

SANDBOX_LEVELS: tuple[SandboxLevel, ...] = get_args(SandboxLevel)

TEMPLATE = "template"
"""The provider that asks no model: types of an API are written as their language spells them."""

HAND = "hand"
"""The model of a text that a person wrote."""

TABLE_PROVIDER = "[tool.pytest-regen] provider"
"""How messages name the provider of the project's table."""

SERVICES = ("anthropic", "openai", "ollama", "litellm")
"""What stands before the colon where a provider is named by service and model; any other name is
``module:attribute``."""


def split_provider(name: str | None) -> tuple[str, str] | None:
    """Return the service and the model in ``openai:gpt-5``; ``None`` for any other provider."""
    service, colon, model = (name or "").partition(":")
    return (service, model) if colon and service in SERVICES else None


def named_model(name: str | None) -> str | None:
    """Return the model that the name of a provider names, if it does."""
    parts = split_provider(name)
    return parts[1] if parts else None


def effective_provider(option: str | None, default: str | None, model: str | None) -> str | None:
    """Return the name of who answers.

    Args:
        option: who the command line names.
        default: who the project's table names; its model gives way to ``model``.
        model: the model that the command line names.
    """
    if option is not None:
        return option
    parts = split_provider(default)
    return f"{parts[0]}:{model}" if parts and model else default


def is_ci() -> bool:
    """Return whether this run is unattended: ``CI`` is set and not ``false``, ``0`` or empty."""
    return os.environ.get("CI", "").strip().lower() not in {"", "0", "false"}


def stale_outcome(policy: StalePolicy) -> FindingPolicy:
    """Return what a stale type comes to here."""
    if policy == "auto":
        return "fail" if is_ci() else "warn"
    return policy
