"""Default settings of all experiments, from Sinha et al. 2019 (appendix 2.2)."""

from ml_collections import ConfigDict, config_dict

from clutrr_jax.models import MODELS
from generator.config import Config


def base(name: str, models: str) -> ConfigDict:
    """Returns the settings of a run with the given name and comma-separated models."""
    config = ConfigDict()
    config.name = name
    config.models = models
    config.tensorboard = False  # also write TensorBoard event files
    config.seed = 0  # of the first replica; replica i has seed + i

    # A data set: .zip, folder, .csv, .parquet or .jsonl. Empty: generate stories with the settings
    # `generate`. "generate": the same, with new train stories in every epoch. Several joined by
    # commas, such as "FILE,generate": the train rows of all, the test rows of the first.
    config.data = ""
    config.generate = ConfigDict(Config().to_json())

    config.train = ConfigDict({
        "replicas": 10,
        "steps": 10_000,  # at most
        "patience": 1_000,  # steps without a better dev score after which a replica stops; 0: never
        "epochs": config_dict.placeholder(int),  # instead of `steps` and `patience`, if it is set
        "selection": "dev_loss",  # the epoch that is tested; dev_accuracy (as in the paper) or last
        "entities": "redrawn",  # every epoch; fixed (as in the paper) or learned
        "batch": 100,  # stories per step
        "microbatches": 1,  # parts of each batch, which devices can share
        "learning_rate": 1e-3,  # of Adam
        "grad_clip_norm": 5.0,
        "ema_decay": 0.999,  # per step, of the averaged parameters that are evaluated
        "shuffle_sentences": 0.5,  # fraction of stories whose sentences are shuffled each epoch
        "curriculum": 0,  # first epochs that train on the shortest clauses only
        "dev_fraction": 0.2,  # of the train stories, to select the epoch that is tested
        "checkpoint_minutes": 1.0,  # between checkpoints; one is always written at the end
    })  # fmt: skip

    # Settings of each model. Its `train` settings override those above where they are set.
    for model, spec in MODELS.items():
        own = spec.config.get("train", {})
        config[model] = ConfigDict({k: v for k, v in spec.config.items() if k != "train"})
        config[model].train = ConfigDict({
            name: config_dict.placeholder(config.train.get_type(name)) for name in config.train
        })  # fmt: skip
        config[model].train.update(own)
    return config
