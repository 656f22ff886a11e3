"""Data sets with fixed recipes.

diagnosis  tests that tell a reading error from a reasoning error
release    benchmark releases, whose settings, and therefore bytes, never change
"""
