"""Training of the replicas of a model, from a run to the loss.

  loop.run_model         data, state, epochs, tests, summary
  loop.train_model       the loop over the epochs; after each one the `hooks` are called
  Trainer.epoch          rows [R, steps, M, b], in segments; lifts what is below to all
    steps.train_segment  steps, dev stories and selection, from one batch of the epoch to another
    steps.train_steps    loop over the steps: rows [M, b] of one bucket of lengths
    steps.train_step     gradient, Adam, exponential moving average of the parameters
    steps.gradient       pack the stories of each microbatch, gradient, sum over devices
    steps.loss_fn        sum of the losses
    steps.grade_dev      answers of the averaged parameters to the dev stories
    steps.dev_metrics    dev accuracy and loss
    steps.select_epoch   keep the parameters that are tested

`steps.TrainState` holds everything that changes, `steps.Setup` what does not. R replicas are the
leading axis of every array (`replicas`); each batch has M microbatches of b stories.
"""
