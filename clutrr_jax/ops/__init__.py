"""Operations with a hand-written version next to a plain reference.

The hand-written version runs on CPUs only, where it was measured to train faster
(docs/performance.md); the reference runs on accelerators.
"""
