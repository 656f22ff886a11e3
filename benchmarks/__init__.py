"""How fast it is, beside what the machine can do."""
