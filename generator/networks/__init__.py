"""Random graphs of facts of any algebra, as in STaR (Khalid and Schockaert 2025).

sampler  graphs of which one relation between the query pair is possible
command  `python -m generator --algebra NAME`
"""
