"""What a turn is made with where nobody says otherwise. A leaf."""

__all__ = ["DEFAULT_MAX_TOKENS", "DEFAULT_MODEL", "SESSION_MAX_TOKENS"]

DEFAULT_MODEL = "claude-sonnet-5-5"

DEFAULT_MAX_TOKENS = 8_192
"""Upper limit of a reply, in tokens."""

SESSION_MAX_TOKENS = 16_384
"""Upper limit of a reply in a session, whose replies are sets of things rather than one."""
