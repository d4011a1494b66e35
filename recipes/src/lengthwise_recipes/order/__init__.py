"""What the order of sequences costs a model: the registered experiment of docs/order.md.

data        `Pool`: lines and pairs of text, from files that anyone can have
steps       the sequences of each step, by arm
training    two small models, one run, and the variance ratios as it learns
study       all runs in turn; it goes on from its own result
page        the section of results
"""
