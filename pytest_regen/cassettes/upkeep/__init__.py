"""Cassettes between runs: check, show, convert."""
