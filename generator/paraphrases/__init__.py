"""Paraphrases: the wordings of facts that stories are written with.

    load        loads the bank that the settings select; reads and writes bank files
    templates   the synthetic and the plain language: sentences for one fact or two
    bank        the embedded bank: short stories for clauses of one to three facts
    frames      the hand-written frames and word lists (data/) that `bank` combines
    importer    extracts a bank from released stories (`import-paraphrases`)
    statistics  table 1 of the paper for any bank (`stats`)

The `Bank` class and its use in stories are in `generator.stories.text`.
"""
