"""The length share: how much of the noise of a gradient goes with length, and what that makes of a plan.

share       `LengthShare`, from gradients of single sequences; `StepNoise`, what the steps of a plan are worth by it
gradients   `length_share`, which takes those gradients of a PyTorch model
noise       the estimate behind both
"""
