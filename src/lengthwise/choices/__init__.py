"""Choices: how batches are made. One file a verb, and what they stand on.

cost, chunk                             what a batch costs; sequences taken apart
boxes, buckets, edges                   buckets of several lengths; edges that are found, and those that are given
bands, rate_distortion, warp            several lengths in a line; the law of max-entropy batching, and its sort
order, cut, deal, arrange               the four verbs
batching, tags                          one choice of each, and the names of all in JSON
named                                   the batchings that papers and command line know by name
"""
