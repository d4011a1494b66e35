"""A rerun of Doetsch, Golik and Ney 2017: chunks and orders for a hybrid acoustic model."""
