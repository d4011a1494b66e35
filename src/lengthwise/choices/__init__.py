"""Choices: how batches are made. One file for each stage, and what they need.

cost, chunk                             what a batch costs; sequences taken apart
boxes, buckets, edges                   buckets of several lengths; edges that are found, and those that are given
bands, rate_distortion, warp            several lengths in a line; the law of max-entropy batching, and its sort
order, cut, deal, arrange               the four stages
batching, tags                          one choice of each, and the names of all in JSON
named                                   the batchings that papers and command line know by name
"""
