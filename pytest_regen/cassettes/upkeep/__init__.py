"""What people do with cassettes between runs: check, show, convert."""

__all__: tuple[str, ...] = ()
