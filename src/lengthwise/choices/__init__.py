"""Choices: the ways to make batches. One file for each stage, and its helpers.

chunk       sequences cut into pieces, before all other stages
order       the order in which sequences are cut
            buckets                           edges of buckets: found for one length, given for several
            bands                             a line of sequences that have several lengths
cut         the neighbours that share a batch, and their cost: cost
            greedy                            batches filled in order
            rows                              whole sequences packed into rows
deal        the batches that share a step, and the ranks that take them
arrange     the order of the steps
names       the names of choices in JSON and in Python
batching    one choice of each
arithmetic  fast array helpers for millions of lengths; multiples of lengths
"""
