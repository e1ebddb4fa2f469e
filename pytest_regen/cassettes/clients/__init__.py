"""HTTP clients whose requests a cassette answers or records; only ``vcr`` knows vcrpy."""

__all__: tuple[str, ...] = ()
