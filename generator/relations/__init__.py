"""Relations between two elements, and what follows from facts.

algebra           relations, inverses and composition tables as data
kinship           the relations of families and their composition rules
algebras          RCC-8, Allen's intervals, and those of users
deduction         relations that facts imply by rules, and proofs
path_consistency  relations that facts leave possible
"""
