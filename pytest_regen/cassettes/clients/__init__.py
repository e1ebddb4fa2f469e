"""HTTP clients whose requests a cassette answers or records; only ``vcr_*`` know vcrpy."""

__all__: tuple[str, ...] = ()
