"""What a step costs, and what to train with on this machine."""
