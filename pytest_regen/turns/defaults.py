"""What a turn is made with where nobody says otherwise. A leaf."""

__all__ = ["DEFAULT_MAX_TOKENS", "DEFAULT_MODEL"]

DEFAULT_MODEL = "claude-sonnet-5-5"

DEFAULT_MAX_TOKENS = 8_192
"""Upper limit of a reply, in tokens."""
