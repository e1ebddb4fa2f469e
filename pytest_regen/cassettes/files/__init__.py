"""Cassettes as files: laid out, read whoever wrote them, appended to and replaced without loss."""

__all__: tuple[str, ...] = ()
