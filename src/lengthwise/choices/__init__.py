"""Choices: how batches are made. One file for each stage, and what it needs.

chunk       sequences taken apart, before all else
order       in which order sequences are cut
            buckets                           edges of buckets: found of one length, given of several
            bands                             several lengths in a line
cut         which neighbours share a batch, and what that costs: cost
            greedy                            batches filled in order
            rows                              whole sequences packed into rows
deal        which batches share a step, and which rank takes which
arrange     in which order the steps are taken
batching    one choice of each, and their names in JSON
arithmetic  millions of lengths, looked at as seldom as possible; multiples of them
"""
