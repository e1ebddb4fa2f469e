"""How often a law is tried: few times in every run, more often where one asks for it."""

from hypothesis import settings

_FEW = 40
"""Examples of the default profile, see the root conftest."""


def scaled(count: int) -> int:
    """Return how many examples the profile of this run asks for, ``count`` in the default one.

    A number in ``settings(max_examples=…)`` would be the same under
    ``--hypothesis-profile=thorough``.
    """
    profile = settings.default
    assert profile is not None
    return max(1, count * profile.max_examples // _FEW)
