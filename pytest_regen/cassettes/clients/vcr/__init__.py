"""The one room that knows vcrpy: its patches for our cassettes, and its cassettes watched."""

__all__: tuple[str, ...] = ()
