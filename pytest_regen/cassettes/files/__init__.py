"""Cassettes as files: format, reading any recorder's, appending and replacing without loss."""

__all__: tuple[str, ...] = ()
