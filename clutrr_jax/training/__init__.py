"""Training of the replicas of a model, from a run to a single step.

One epoch, with R replicas, M microbatches of b stories in each batch:

  loop.train_model       epochs, metrics, checkpoints
  Trainer.epoch          order of the stories on the host: rows [R, steps, M, b]
    Replicas.map         replicas over the devices: each runs its own with rows [steps, M, b]
    steps.train_epoch    scan over the steps: rows [M, b] of one bucket of lengths
    steps.train_step     gradient, Adam, exponential moving average of the parameters
    steps.gradient       pack the stories of each microbatch, loss and gradient, sum over devices
  Trainer._dev_metrics   dev accuracy and loss of the averaged parameters, [R] each
  state.select_epoch     keep the parameters that are tested

`state.TrainState` holds everything that changes, with R as the leading axis of every array.
"""
