"""What stands before the first boundary of a C# source: nullable context, usings, namespace."""

import re

from pytest_regen.errors import UsageError

__all__ = ["PROFILES", "header"]

_USINGS = (
    "System",
    "System.Collections.Generic",
    "System.Text.Json",
    "System.Text.Json.Serialization",
)

PROFILES: dict[str, tuple[str, ...]] = {
    "default": ("System.ComponentModel", "System.ComponentModel.DataAnnotations"),
    # Nullable, Required and Description come from the schema generator here: with the usings of
    # the default profile beside it, [Required] would be ambiguous. PrimaryKey is the SDK's.
    "xchange": ("Json.Schema.Generation", "Xchange.Connector.SDK.CacheWriter"),
}
"""Where each profile's attributes come from, beside what both use."""

_NAMESPACE = re.compile(r"@?[^\W\d]\w*(\.@?[^\W\d]\w*)*")


def header(*, namespace: str, profile: str) -> str:
    """Return the lines before the first boundary, without a final line end.

    Args:
        namespace: a dotted name, or "" for the global namespace.
        profile: ``default`` (base class library only) or ``xchange``.

    Raises:
        UsageError: the namespace is no dotted name, or the profile is unknown.
    """
    if profile not in PROFILES:
        raise UsageError(
            f"C# has no profile {profile!r}",
            hint=f"use one of: {', '.join(sorted(PROFILES))}",
        )
    if namespace and _NAMESPACE.fullmatch(namespace) is None:
        raise UsageError(
            f"{namespace!r} is no C# namespace",
            hint="use identifiers joined by dots, e.g. --namespace Acme.Projects",
        )
    usings = sorted((*_USINGS, *PROFILES[profile]), key=_system_first)
    lines = ["#nullable enable", "", *(f"using {using};" for using in usings)]
    if namespace:
        lines += ["", f"namespace {namespace};"]
    return "\n".join(lines)


def _system_first(using: str) -> tuple[bool, str]:
    return not using.startswith("System"), using
