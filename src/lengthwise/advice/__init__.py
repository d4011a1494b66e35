"""The cost of a step, and the batches to train with.

search            `advise`: it measures the candidates; answer is what it returns
code              choices and plans as lines of Python, and in words
step_timing       `measure_step`: step_checks; step_cost is what comes of it
"""
