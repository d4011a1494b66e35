"""What the order of sequences costs a model: the registered experiment of docs/order.md."""
