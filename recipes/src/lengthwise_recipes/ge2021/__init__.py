"""A rerun of Ge et al. 2021: semi-sorted batches, dynamic sizes and randomised batches for Tacotron 2.

The paper's names: RAND random, SB sorted, SSB semi-sorted, BKT bucket and ATS alternated-sorting batching; BR batch
randomisation, DBS dynamic batch sizes; ZPR zero-padding rate, ABL average batch length, VL validation loss.
"""
