"""Doetsch, Golik and Ney 2017 rerun: chunks and orders for a hybrid acoustic model."""
