"""Training speed of `bilstm_mean` next to that of the same model in plain PyTorch.

    pip install torch==2.13.0    # not a dependency of clutrr_jax
    python -m benchmarks lstm --data path/to/data_089907f8.zip

The PyTorch model is what one would write first: embedding, `torch.nn.LSTM` with two layers in both
directions, dropout, mean over the words, two linear layers, clipped gradients and Adam. Its batches
hold stories of similar length, padded to the longest of the batch. Both use one core. Epochs of the
two alternate, so that a change of the machine's speed affects both; times are processor times.
"""

import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from benchmarks.models import data_options, limit_cores, new_trainer, next_epoch, read_data
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.data.vocabulary import PAD
from clutrr_jax.devices import device_name
from clutrr_jax.models import MODELS
from clutrr_jax.settings import TRAIN
from generator.errors import InputError

MODEL = "bilstm_mean"


def main(argv: list[str]) -> int:
    """Prints one line for each batch size."""
    arguments = data_options("lstm", __doc__, repeats=3).parse_args(argv)
    if find_spec("torch") is None:
        raise InputError("PyTorch is not installed, expected it by pip install torch==2.13.0")
    limit_cores(1, 1)
    data, spec = read_data(arguments), MODELS[MODEL]
    print(f"{device_name()}, median of {arguments.repeats} epochs, train stories/s")
    print(f"{'batch':>5}{'clutrr_jax':>12}{'PyTorch':>12}{'ratio':>8}")
    for batch in (100, 20):
        trainer = new_trainer(spec, ConfigDict(spec.config), data, batch=batch)
        runs = [next_epoch(trainer), torch_epochs(data, batch)]
        seconds, (ratio,) = in_turn(runs, arguments.repeats)
        ours, theirs = (len(data.train) / s for s in seconds)
        print(f"{batch:5}{ours:12,.0f}{theirs:12,.0f}{ratio:8.2f}", flush=True)
    return 0


def in_turn(runs: list[Callable[[], None]], repeats: int) -> tuple[list[float], list[float]]:
    """Processor seconds of an epoch of each run, and ratio of those of the second and later runs to
    the first: medians of `repeats` epochs in turn, after one of each that compiles."""

    def seconds(run: Callable[[], None]) -> float:
        start = time.process_time()
        run()
        return time.process_time() - start

    _, *epochs = [[seconds(run) for run in runs] for _ in range(1 + repeats)]
    ratios = [statistics.median(s[i] / s[0] for s in epochs) for i in range(1, len(runs))]
    return [statistics.median(s) for s in zip(*epochs, strict=True)], ratios


def torch_epochs(data: Prepared, batch: int) -> Callable[[], None]:
    """Returns a function that trains the next epoch of the PyTorch model."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    step = torch_step(torch, torch_model(torch, data))
    stories = data.train_stories
    lengths = np.asarray(stories.n_token)
    words = np.split(np.asarray(stories.tokens), np.cumsum(lengths)[:-1])
    labels = np.array(stories.target, np.int64)
    batches = np.array_split(np.argsort(lengths), -(-len(lengths) // batch))
    rng = np.random.default_rng(0)

    def run() -> None:
        for index in rng.permutation(len(batches)):
            rows = batches[index]
            tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(words[i]) for i in rows])
            step(tokens, torch.tensor(labels[rows]))

    return run


def torch_step(torch: Any, model: Any) -> Callable[[Any, Any], None]:
    """Returns a function of inputs and labels: an optimizer step of a PyTorch model."""
    optimizer = torch.optim.Adam(model.parameters(), lr=TRAIN["learning_rate"])

    def step(inputs: Any, labels: Any) -> None:
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), TRAIN["grad_clip_norm"])
        optimizer.step()

    return step


def torch_model(torch: Any, data: Prepared) -> Any:
    """Returns the PyTorch model, with the sizes of `bilstm_mean`."""
    config, sizes = ConfigDict(MODELS[MODEL].config), data.sizes

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(sizes.tokens, config.embedding, padding_idx=PAD)
            self.dropout = torch.nn.Dropout(config.dropout)
            self.lstm = torch.nn.LSTM(
                config.embedding, config.hidden, config.layers,
                dropout=config.dropout, bidirectional=True,
            )  # fmt: skip
            self.hidden = torch.nn.Linear(2 * config.hidden, config.readout)
            self.out = torch.nn.Linear(config.readout, sizes.relations)

        def forward(self, tokens: Any) -> Any:
            states, _ = self.lstm(self.dropout(self.embed(tokens)))
            mask = (tokens != PAD).unsqueeze(-1)
            mean = (states * mask).sum(0) / mask.sum(0)
            return self.out(self.dropout(torch.relu(self.hidden(self.dropout(mean)))))

    return Model()
