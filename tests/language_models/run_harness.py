"""Runs a command line of a harness: `python run_harness.py EXPORT inspect|lm_eval ARGUMENT...`.

Its mock model answers the prompts of the exported folder: it knows those of k = 2. Runs in the
environment of the harnesses.
"""

import json
import sys
from pathlib import Path

from inspect_ai._cli.main import main as inspect
from inspect_ai.model import ModelOutput, ModelUsage
from inspect_ai.model._providers.mockllm import MockLLM
from lm_eval.__main__ import cli_evaluate as lm_eval
from lm_eval.models.dummy import DummyLM


def answer_to(prompt: str) -> str:
    row = ROWS[prompt]
    return f"Let me think.\nAnswer: {row['target'].title()}." if row["k"] == 2 else "Who knows?"


async def generate(self, input, **_) -> ModelOutput:
    output = ModelOutput.from_content("mock", answer_to(input[-1].text))
    output.usage = ModelUsage()
    return output


def generate_until(self, requests, **_) -> list[str]:
    return [answer_to(request.args[0]) for request in requests]


if __name__ == "__main__":
    folder, program, *arguments = sys.argv[1:]
    lines = (Path(folder) / "prompts.jsonl").read_text().splitlines()
    ROWS = {row["prompt"]: row for row in map(json.loads, lines)}
    MockLLM.generate = generate
    DummyLM.generate_until = generate_until
    sys.argv = [program, *arguments]
    {"inspect": inspect, "lm_eval": lm_eval}[program]()
