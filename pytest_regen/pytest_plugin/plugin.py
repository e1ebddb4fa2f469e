"""The pytest plugin: options, items, fixtures, markers, healing."""
