"""The length share: the part of the gradient noise that sequence length explains, and its effect on a plan.

share       `LengthShare`, from gradients of single sequences; `StepNoise`, the gradient noise of the steps of a plan
gradients   `length_share`, which computes those gradients of a PyTorch model
noise       the estimate that both use
"""
