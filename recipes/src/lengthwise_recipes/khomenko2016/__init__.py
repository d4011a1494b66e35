"""Khomenko et al. 2016 rerun: buckets and processes on online handwriting.

Q is the number of buckets.
"""
