"""Training speed of graph models next to that of the same models in PyTorch Geometric.

    pip install torch==2.13.0 torch_geometric==2.8.1    # not dependencies of clutrr_jax
    python -m benchmarks graphs --data path/to/data_089907f8.zip

The PyTorch models are what one would write first, with `GATConv` and its edge features, `RGCNConv`,
and `GCNConv`, which has no edge features and so less to do than `gcn`. Sizes, dropout, batches of
100, clipped gradients and Adam are those of clutrr_jax. Epochs alternate on one core; times are
processor times. "once": batches are collated before the first epoch, not in every epoch.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from benchmarks.lstm import in_turn, torch_step
from benchmarks.models import data_options, limit_cores, new_trainer, next_epoch, read_data
from clutrr_jax.data.prepare import Prepared
from clutrr_jax.devices import device_name
from clutrr_jax.models import MODELS
from clutrr_jax.models.gcn import BASES
from generator.errors import InputError


def main(argv: list[str]) -> int:
    """Prints one line for each model."""
    arguments = data_options("graphs", __doc__, repeats=5).parse_args(argv)
    if not (find_spec("torch") and find_spec("torch_geometric")):
        packages = "torch==2.13.0 torch_geometric==2.8.1"
        raise InputError(f"PyTorch Geometric is missing, expected it by pip install {packages}")
    limit_cores(1, 1)
    data = read_data(arguments)
    print(f"{device_name()}, median of {arguments.repeats} epochs, train stories/s")
    print(f"{'model':5}{'clutrr_jax':>12}{'PyG':>10}{'ratio':>8}{'PyG, once':>12}{'ratio':>8}")
    for name in ("gat", "gcn", "rgcn"):
        trainer = new_trainer(MODELS[name], ConfigDict(MODELS[name].config), data)
        runs = [next_epoch(trainer), *torch_epochs(name, data)]
        seconds, (ratio, once) = in_turn(runs, arguments.repeats)
        ours, theirs, collated = (f"{len(data.train) / s:,.0f}" for s in seconds)
        print(f"{name:5}{ours:>12}{theirs:>10}{ratio:8.2f}{collated:>12}{once:8.2f}", flush=True)
    return 0


def torch_epochs(name: str, data: Prepared) -> list[Callable[[], None]]:
    """Returns two functions that train the next epoch of the PyTorch model, the second on batches
    that are collated once."""
    import torch
    from torch_geometric.loader import DataLoader

    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(torch_stories(name, data), 100, shuffle=True)
    step, batches = torch_step(torch, torch_model(name, data)), list(loader)

    def run(batches: Any) -> None:
        for batch in batches:
            step(batch, batch.y)

    return [lambda: run(loader), lambda: run(batches[i] for i in torch.randperm(len(batches)))]


def torch_stories(name: str, data: Prepared) -> list[Any]:
    """Returns the train stories in the format of PyTorch Geometric."""
    import torch
    from torch_geometric.data import Data

    stories, found = data.train_stories, []
    entities = np.split(np.asarray(stories.entity), np.asarray(stories.node_start)[1:])
    facts = np.stack([stories.senders, stories.receivers, stories.relation])
    parts = np.split(facts, np.asarray(stories.edge_start)[1:], axis=1)
    asked = np.asarray(stories.query), np.asarray(stories.target)
    for entity, part, query, target in zip(entities, parts, *asked, strict=True):
        edges, relation = part[:2], part[2]
        if MODELS[name].config["directions"] == "both":
            edges = np.concatenate([edges, edges[::-1]], axis=1)
            relation = np.concatenate([relation, relation + data.sizes.edge_types])
        arrays = {"edge_index": edges, "relation": relation, "query_index": query[:, None],
                  "entity": entity, "y": target}  # fmt: skip
        tensors = {key: torch.tensor(np.int64(array)) for key, array in arrays.items()}
        found.append(Data(**tensors, num_nodes=len(entity)))
    return found


def torch_model(name: str, data: Prepared) -> Any:
    """Returns the PyTorch model, with the sizes of the model of this name."""
    import torch
    from torch_geometric import nn

    config, sizes = ConfigDict(MODELS[name].config), data.sizes
    width = config.node

    def convolution() -> Any:
        if name == "gat":
            return nn.GATConv(width, width // config.heads, config.heads, edge_dim=config.edge)
        if name == "gcn":
            return nn.GCNConv(width, width)
        return nn.RGCNConv(width, width, 2 * sizes.edge_types, num_bases=BASES)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("entity", torch.randn(sizes.entities, width) / width**0.5)
            if name == "gat":
                self.relation = torch.nn.Embedding(sizes.edge_types, config.edge)
            self.steps = torch.nn.ModuleList(convolution() for _ in range(config.steps))
            self.dropout = torch.nn.Dropout(config.dropout)
            self.readout = torch.nn.Sequential(
                torch.nn.Linear(3 * width, config.readout), torch.nn.ReLU(), self.dropout,
                torch.nn.Linear(config.readout, sizes.relations),
            )  # fmt: skip

        def forward(self, batch: Any) -> Any:
            x = self.entity[batch.entity]
            features = self.relation(batch.relation) if name == "gat" else batch.relation
            edges = [batch.edge_index] if name == "gcn" else [batch.edge_index, features]
            for _ in range(config.rounds):
                for step in self.steps:
                    x = torch.nn.functional.elu(step(self.dropout(x), *edges))
            story = nn.global_mean_pool(x, batch.batch, batch.num_graphs)
            return self.readout(torch.cat([story, *x[batch.query_index]], dim=1))

    return Model()
