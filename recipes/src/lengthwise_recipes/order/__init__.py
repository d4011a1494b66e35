"""The registered experiment of docs/order.md: what the order of sequences costs a model."""
