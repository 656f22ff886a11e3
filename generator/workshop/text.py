"""Sentence templates of the benchmark of 2018: facts, and eight kinds of distractors.

The kinds are those of Sinha et al. 2018, appendix A.1; the sentences were written for this project.
The names of people are letters, as in the figures of the paper. Its entities are anonymized
(section 2), so only the facts reveal a gender.
"""

import string

PEOPLE = tuple(string.ascii_uppercase)

# Templates for the fact that Y is the r of X.
FACTS = (
    "[{y}] is the {r} of [{x}].",
    "[{x}]'s {r} is [{y}].",
    "[{x}] has a {r} named [{y}].",
)

# kind: (templates, values). Each sentence mentions one person and no kinship.
_ATTRIBUTES = {
    "works_at": (
        ("[{}] works at {}.", "[{}] has a job at {}.", "[{}] is employed by {}."),
        ("a bakery", "a bank", "the post office", "the city hospital", "a law firm",
         "a car factory", "the local newspaper", "an airline"),
    ),
    "alumni_of": (
        ("[{}] graduated from {}.", "[{}] holds a degree from {}.", "[{}] once studied at {}."),
        ("Oxford", "McGill", "Stanford", "the Sorbonne", "Heidelberg", "Kyoto University",
         "Cornell", "the University of Toronto"),
    ),
    "school": (
        ("[{}] went to {}.", "[{}] was a pupil of {}.", "[{}] spent eight years at {}."),
        ("Riverside School", "Lincoln High School", "Oakwood Academy", "Hillcrest School",
         "Maple Street School", "Northgate High School", "Lakeview Academy", "Westfield School"),
    ),
    "location_born": (
        ("[{}] was born in {}.", "[{}] comes from {}.", "The birthplace of [{}] is {}."),
        ("Montreal", "Lisbon", "Nairobi", "Chicago", "Osaka", "Dublin", "Lima", "Melbourne"),
    ),
    "preferred_social_media": (
        ("[{}] prefers {} to other social media.", "[{}] posts on {} every day.",
         "[{}] likes to read the news on {}."),
        ("Facebook", "Twitter", "Instagram", "Snapchat", "Reddit", "Tumblr", "LinkedIn",
         "Pinterest"),
    ),
    "hobby": (
        ("[{}] enjoys {}.", "The favorite hobby of [{}] is {}.", "[{}] spends the evenings {}."),
        ("painting", "baking bread", "building model trains", "knitting", "reading novels",
         "playing chess", "collecting stamps", "watching the stars"),
    ),
    "sport": (
        ("[{}] plays {}.", "[{}] likes to watch {}.", "[{}] is a fan of {}."),
        ("tennis", "hockey", "basketball", "soccer", "baseball", "golf", "cricket", "volleyball"),
    ),
    "political_view": (
        ("[{}] votes for {}.", "[{}] supports {}.", "[{}] agrees with {} on most things."),
        ("the Republicans", "the Democrats", "the Greens", "the Libertarians"),
    ),
}  # fmt: skip

# All sentences of each kind, with `{}` for the person.
DISTRACTORS = {
    kind: tuple(template.format("{}", value) for template in templates for value in values)
    for kind, (templates, values) in _ATTRIBUTES.items()
}
KINDS = tuple(DISTRACTORS)
