"""A rerun of Khomenko et al. 2016: buckets and processes on online handwriting.

Q is the number of buckets.
"""
