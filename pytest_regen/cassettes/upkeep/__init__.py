"""Cassettes between runs: check, show, convert."""

__all__: tuple[str, ...] = ()
