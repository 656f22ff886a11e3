"""The tables of the CLUTRR papers: accuracies with their errors, by our model names.

Sources: Sinha et al. 2019 (EMNLP; chapter 3 of Sinha's thesis has the same numbers) and Sinha et
al. 2018 (workshop). Figures 5, 6 and 7 of the 2019 paper and figure 2 of the 2018 paper are plots
without numbers and therefore missing. Table 1 of the 2019 paper is
`generator.paraphrases.statistics.PAPER`.
"""

from clutrr_jax.evaluation.published import Accuracy

NOISE = ("clean", "supporting", "irrelevant", "disconnected")
MODELS_2019 = ("bilstm_attention", "bilstm_mean", "rn", "mac", "bert", "bert_lstm", "gat")
MODELS_2018 = ("bilstm_2018", "gnn_2018_mean", "gnn_2018_attention")


# (noise in train, noise in test, model) -> accuracy
Robustness = dict[tuple[str, str, str], Accuracy]


def _robustness(text: str) -> Robustness:
    rows = (line.split() for line in text.strip().splitlines())
    return {
        (train, test, model): Accuracy(*map(float, cell.split("±")))  # type: ignore[arg-type]
        for train, test, *cells in rows
        for model, cell in zip(MODELS_2019, cells, strict=True)
    }


# Sinha et al. 2019, table 2: trained and tested on k = 2, 3, ten runs.
TABLE_2 = _robustness("""
clean        clean        .58±.05   .53±.05   .49±.06   .63±.08   .37±.06   .67±.03   1.00±.00
clean        supporting   .76±.02   .64±.22   .58±.06   .71±.07   .28±.10   .66±.06   .24±.20
clean        irrelevant   .70±.15   .76±.02   .59±.06   .69±.05   .24±.08   .55±.03   .51±.15
clean        disconnected .49±.05   .45±.05   .50±.06   .59±.05   .24±.08   .50±.06   .80±.17
supporting   supporting   .67±.06   .66±.07   .68±.05   .65±.04   .32±.09   .57±.04   .98±.01
irrelevant   irrelevant   .51±.06   .52±.06   .50±.04   .56±.04   .25±.06   .53±.06   .93±.01
disconnected disconnected .57±.07   .57±.06   .45±.11   .40±.10   .17±.05   .47±.06   .96±.01
""")
# Sinha et al. 2019, table 3 (appendix 1.4): the rest of train noise x test noise.
TABLE_3 = _robustness("""
supporting   clean        .38±.04   .32±.04   .40±.09   .45±.03   .19±.06   .39±.06   .92±.17
supporting   supporting   .67±.06   .66±.07   .68±.05   .65±.04   .32±.09   .57±.04   .98±.01
supporting   irrelevant   .44±.03   .39±.03   .51±.08   .46±.09   .20±.06   .36±.05   .50±.23
supporting   disconnected .31±.21   .25±.16   .47±.08   .41±.06   .20±.08   .32±.04   .92±.05
irrelevant   clean        .57±.05   .56±.05   .46±.13   .67±.05   .24±.06   .46±.08   .92±.00
irrelevant   supporting   .38±.22   .31±.16   .61±.07   .61±.04   .27±.06   .46±.04   .77±.12
irrelevant   irrelevant   .51±.06   .52±.06   .50±.04   .56±.04   .25±.06   .53±.06   .93±.01
irrelevant   disconnected .44±.26   .54±.27   .55±.05   .61±.06   .26±.03   .45±.08   .85±.25
disconnected clean        .45±.02   .47±.03   .53±.09   .50±.06   .22±.09   .44±.05   .75±.07
disconnected supporting   .47±.03   .46±.05   .54±.03   .58±.06   .22±.06   .38±.08   .78±.12
disconnected irrelevant   .47±.05   .48±.03   .52±.04   .51±.05   .17±.04   .38±.05   .56±.26
disconnected disconnected .57±.07   .57±.06   .45±.11   .40±.10   .17±.05   .47±.06   .96±.01
""")
# Sinha et al. 2019, table 4 (appendix 1.4): the same with synthetic placeholders.
TABLE_4 = _robustness("""
supporting   clean        .96±.01   .97±.01   .88±.05   .94±.02   .48±.08   .57±.08   .92±.17
supporting   supporting   .96±.03   .96±.03   .97±.01   .97±.01   .75±.07   .88±.05   .98±.01
supporting   irrelevant   .92±.02   .93±.01   .90±.03   .91±.01   .56±.04   .54±.06   .50±.23
supporting   disconnected .80±.04   .83±.04   .76±.08   .86±.04   .27±.06   .42±.08   .92±.05
irrelevant   clean        .63±.02   .61±.07   .85±.09   .80±.07   .53±.09   .44±.06   .92±.00
irrelevant   supporting   .66±.03   .64±.04   .69±.06   .76±.06   .42±.08   .43±.08   .77±.12
irrelevant   irrelevant   .89±.04   .86±.10   .74±.11   .78±.06   .61±.10   .83±.06   .93±.01
irrelevant   disconnected .64±.02   .62±.05   .72±.05   .73±.04   .41±.04   .61±.05   .85±.25
disconnected clean        .90±.05   .82±.12   .94±.02   .93±.04   .68±.07   .64±.02   .75±.07
disconnected supporting   .87±.04   .82±.05   .85±.03   .88±.04   .54±.08   .50±.05   .78±.12
disconnected irrelevant   .87±.03   .85±.03   .83±.03   .87±.02   .59±.09   .58±.09   .56±.26
disconnected disconnected .91±.04   .91±.03   .80±.17   .71±.11   .49±.10   .79±.10   .96±.01
""")
# The last row of each table, as printed. It holds the means of the columns, except for three cells
# whose means are .604 (table 2, MAC), .267 (table 2, BERT) and .528 (table 4, BERT). The printed
# errors are left out: they are the same in all three tables.
AVERAGES = {
    "table 2": dict(zip(MODELS_2019, (0.61, 0.59, 0.54, 0.61, 0.30, 0.56, 0.77), strict=True)),
    "table 3": dict(zip(MODELS_2019, (0.47, 0.46, 0.52, 0.53, 0.23, 0.43, 0.82), strict=True)),
    "table 4": dict(zip(MODELS_2019, (0.83, 0.82, 0.83, 0.84, 0.58, 0.60, 0.82), strict=True)),
}

# Sinha et al. 2019, table 5 (appendix 1.7): people with limited time. With unlimited time, people
# answer all questions correctly at every k.
HUMANS = {2: Accuracy(0.848, None), 3: Accuracy(0.773, None), 4: Accuracy(0.477, None),
          5: Accuracy(0.424, None), 6: Accuracy(0.406, None)}  # fmt: skip

# Sinha et al. 2018, table 1: (k in train, k in test, model) -> accuracy; no errors given.
_WORKSHOP = """
100   46.6   0      0  37    100   48    0     17.8  45.5   100   100   18.5  47.59  100   100
98.3  69     0      0  59.8  95.3  87.8  39.9  18.4  49.4   96.8  92.7  18.5  47.6   96.2  92.2
99.8  67.79  0.001  0  65.7  98.2  89.9  44.1  16.8  47.1   99.1  97.9  17.2  46.29  98.7  97.2
"""
WORKSHOP_TABLE_1 = {
    (3 + column // 4, 3 + column % 4, model): Accuracy(float(cell) / 100, None)
    for model, line in zip(MODELS_2018, _WORKSHOP.strip().splitlines(), strict=True)
    for column, cell in enumerate(line.split())
}

# Sinha et al. 2018, table 2: path length -> unique paths, and unique paths with gender.
WORKSHOP_TABLE_2 = {
    3: (20, 40), 4: (84, 168), 5: (305, 610), 6: (978, 1956), 7: (2814, 5628),
}  # fmt: skip
