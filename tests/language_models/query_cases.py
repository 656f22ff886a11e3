"""Answers of language models to "What is Cy to Ann?" about a story of Ann, Bob, Cy and Dee, and the
relation of Cy to Ann that each of them states, or None."""

# Whose relation is stated.
OF_QUERY = [
    # The converse.
    ("Ann is Cy's niece.", None), ("Answer: Ann is Cy's niece.", None),
    ("Ann's relationship to Cy is niece.", None), ("Ann to Cy: niece", None),
    ("Bob to Ann: father", None), ("Answer: uncle, so Ann is his niece.", "uncle"),
    ("Answer: uncle, making her his niece.", "uncle"),
    ("Answer: Cy is Ann's uncle, so Ann is his niece.", "uncle"),
    ("Cy is Ann's husband, so Ann is his wife.", "husband"),
    ("Cy is Ann's aunt, which makes Ann Cy's niece.", "aunt"),
    ("Answer: Cy is Ann's uncle.\nAnswer: Ann is Cy's niece.", "uncle"),
    ("Answer for Cy to Ann: uncle\nAnswer for Ann to Cy: niece", "uncle"),
    ("Bob is Ann's brother and Cy is Bob's son. Thus Ann is Cy's aunt.", None),
    # Other people of the story.
    ("Bob is Ann's father.", None), ("1. Dee is Ann's sister.\n2.", None),
    ("Ann has a sister, Dee.", None), ("Key facts: Ann \u2192 sister \u2192 Dee", None),
    ("Ann's father is Bob.", None), ("Ann and her father Bob went shopping.", None),
    ("Ann's father (Bob) has a brother (Cy).", None), ("Bob's brother", None),
    ("Bob is Ann's father. Cy is Bob's brother.", None),
    ("Answer: Bob is Ann's father.\nCy is Bob's brother.\nSo Cy is Ann's uncle.", "uncle"),
    ("Answer: Bob is Ann's father.\nCy is Bob's brother.\n\nuncle", "uncle"),
    ("Answer: Ann's father is Bob.\nBob's brother is Cy.\nThe answer is uncle.", "uncle"),
    ("Relation: Bob is the father of Ann\nRelation: Cy is the brother of Bob\nSo, Cy is her uncle.",
     "uncle"),
    ("**Relation between Ann and Bob:** father\n**Relation between Bob and Cy:** brother\n\n"
     "Therefore, the answer is uncle.", "uncle"),
    ("Question 1: What is Bob to Ann?\nAnswer: father\nQuestion 2: What is Cy to Bob?\n"
     "Answer: brother", None),
    # The prompt, repeated.
    ("Read. One of: son, aunt.\n\nStory: Ed is her son.\nQuestion: What is Ed to Fay?\nAnswer: son"
     "\n\nStory: Bob is here.\nQuestion: What is Cy to Ann?\nAnswer: uncle", "uncle"),
    ("Story: Ed is Fay's son.\nQuestion: What is Ed to Fay?\nAnswer: son\n\nStory: Cy is here.\n"
     "Question: What is Cy to Ann?\nCy is her uncle.", "uncle"),
    # The query by name.
    ("Cy is Ann's uncle. This is because Bob is Ann's father and Cy is Bob's brother.", "uncle"),
    ("Cy is Ann's **uncle**.\n\nBob is Ann's father, and Cy is Bob's brother.", "uncle"),
    ("Cy is the uncle of Ann. Cy is the brother of Bob, who is the father of Ann.", "uncle"),
    ("Since Bob is Ann's father and Cy is Bob's brother, Cy is Ann's uncle.", "uncle"),
    ("Ann's uncle is Cy. Her father is Bob.", "uncle"), ("Cy's relation to Ann is uncle.", "uncle"),
    ("The relationship between Ann and Cy is uncle.", "uncle"), ("Cy to Ann: uncle", "uncle"),
    ("Cy is the neighbor of Ann's uncle.", None), ("Cy is Ann's brother's", None),
    ("If Cy were male, he would be Ann's uncle. Bob is Ann's father.", None),
    ("Suppose Cy is Ann's uncle. Then Bob is Ann's father.", None),
    ("Nobody says that Cy is Ann's uncle. Bob is Ann's father.", None),
    ("Cy is Ann's uncle. Bob is Ann's father.\n\nWait, Cy is a woman: she is Ann's aunt.", None),
]  # fmt: skip

# Corrections, doubts, cut-off texts and the like, with or without names.
HELD_BACK = [
    # Corrections.
    ("Answer: uncle\n\nCorrection: aunt", "aunt"), ("Answer: uncle\nRevised answer: aunt", "aunt"),
    ("Answer: uncle\n\nBut wait, Cy is female. So she is Ann's aunt.", None),
    ("Answer: uncle\n\nHowever, Cy is female, so the answer should be aunt.", None),
    ("Answer: uncle\n\nI apologize for the mistake. Cy is Ann's aunt.", None),
    ("Answer: uncle\nOr: aunt", None), ("Answer: uncle\nAlternatively: father", None),
    ("Answer: uncle (actually, aunt)", None), ("Answer: uncle, as well as father-in-law", None),
    ("Answer: uncle (or aunt if Cy is female)", None),
    ("Answer: uncle (could also be father)", None),
    # Steps.
    ("Relation: father\nRelation: brother\nThe answer is uncle.", "uncle"),
    ("Result of step 1: father\nResult of step 2: brother\nSo: uncle", "uncle"),
    ('{"facts": [{"b": "Bob", "relation": "father"}, {"b": "Cy", "relation": "brother"}]}', None),
    ("Answer: father (Bob) \u2192 brother (Cy) \u2192 uncle", None),
    ("Father - Bob. Brother - Cy. So, uncle.", None),
    # Cut off.
    ("Answer: mother-in-la", None), ("\\boxed{sister-in", None), ("Cy is Ann's sister-in-", None),
    ("Answer: Cy is the mother of Ann's", None), ("Answer: mother (or", None),
    # Denied, uncertain, or in passing.
    ("It is not true that Cy is her uncle.", None), ("Cy is not necessarily her uncle.", None),
    ("There's no indication that Cy is her uncle.", None), ("Answer: anything but uncle", None),
    ("The story leaves it open whether Cy is her uncle.", None), ("Cy is hardly her uncle.", None),
    ("Cy could potentially be her uncle.", None), ("It's possible that Cy is her uncle.", None),
    ("The answer is uncle. If Cy were a woman, the answer would be aunt.", "uncle"),
    ("One might think the answer is father. But it is uncle.", None),
    ("$\\boxed{\\text{uncle}}$ (not $\\boxed{\\text{nephew}}$)", "uncle"),
    ("All we know is about her mother.", None), ("Ann asked her uncle to pick up Cy.", None),
    ("It is not stated, however Cy must be her aunt.", "aunt"),
    ("Although it is not stated, Cy is her aunt.", "aunt"),
    # Relatives outside the benchmark, and words that are none.
    ("Answer: mother (step)", None), ("Answer: brother (half)", None), ("father by adoption", None),
    ("would-be father-in-law", None), ("Cy is like an uncle to Ann.", None),
    ("Answer: brother by marriage", None), ("It was Mother's Day.", None),
    ("Il s'agit de son oncle.", None), ("R\u00e9ponse: son grand-p\u00e8re", None),
    # Further examples and conclusions.
    ("Answer: uncle\n\nScenario: Dan took his son.\nAnswer: son", "uncle"),
    ("Answer: uncle\n\n### Instruction:\nDan took his son.\n### Response:\nAnswer: son", "uncle"),
    ("In other words, Cy is her uncle.", "uncle"), ("\u2234 Cy is her uncle.", "uncle"),
]  # fmt: skip
