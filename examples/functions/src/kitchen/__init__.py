"""Amounts in recipes, and what to buy for them."""
