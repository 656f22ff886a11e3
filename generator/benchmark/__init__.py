"""Data sets with fixed recipes.

seen_and_new  tests that tell a reading error from a reasoning error
release       benchmark releases, whose settings, and therefore bytes, never change
"""
