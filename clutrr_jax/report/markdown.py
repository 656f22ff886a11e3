"""Tables and results as Markdown."""

import re

from clutrr_jax.report.accuracy import Results, accuracy_table, further_metrics, with_interval
from clutrr_jax.report.tables import (
    EXTRACTION_LEGEND,
    claims_text,
    extraction_table,
    legend,
    settings_table,
    sources,
    summary,
    title,
    training_table,
)

# Characters that Markdown of GitHub may read as markup; a "_" within a word and a "*" at the end of
# the text are none.
_MARKUP = re.compile(
    r"[\\`|~$]|\*(?!$)|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[])|<(?=[\w/!?])|&(?=#?\w+;)"
)


def escape_markdown(text: str) -> str:
    """Returns a text on one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.splitlines()))


def paragraph(text: str) -> str:
    """Returns a text as a paragraph, which no sign at its beginning makes a heading or a list."""
    return re.sub(r"^(\s*)(?=[#>+-])|^(\s*\d+)(?=[.)])", r"\1\2\\", escape_markdown(text))


def markdown_table(table: list[list[str]]) -> list[str]:
    """Formats a table as lines of Markdown."""
    rows = ["| " + " | ".join(map(escape_markdown, line)) + " |" for line in table]
    return [rows[0], "|---" * len(table[0]) + "|", *rows[1:]]


def results_markdown(results: Results) -> str:
    """Returns the text of `results.md`."""
    failed = [
        f"- {r['name']}: {escape_markdown(r['error'])}"
        for r in results["runs"]
        if r["state"] == "failed"
    ]
    found = [f"- {source}" for source in sources(results)]
    paragraphs = [
        f"# {escape_markdown(title(results))}",
        paragraph(results["headline"]),
        paragraph(summary(results)),
        *(["Failed:", "\n".join(failed)] if failed else []),
        legend(results),
        "\n".join(markdown_table(accuracy_table(results, cell=with_interval).texts())),
        *(["Sources:", "\n".join(found)] if found else []),
        claims_text(results),
    ]
    for metric, meaning in further_metrics(results).items():
        table = accuracy_table(results, cell=with_interval, metric=metric)
        paragraphs += [
            f"{metric.capitalize()}: {meaning}",
            "\n".join(markdown_table(table.texts())),
        ]
    for model, rows in results["extraction"].items():
        about = f"Facts that {model} extracts from the text of the test stories (first replica)."
        paragraphs += [
            f"{about} {EXTRACTION_LEGEND}",
            "\n".join(markdown_table(extraction_table(rows))),
        ]
    paragraphs += [
        "![accuracies](curve.png)",
        "\n".join(markdown_table(training_table(results))),
        "\n".join(markdown_table(settings_table(results))),
    ]
    return "\n\n".join(filter(None, paragraphs)) + "\n"
