"""The cost of a step, and the batches to train with.

search            `advise`, which measures the candidates, and returns an answer
code              choices and plans as lines of Python, and in words
step_timing       `measure_step`, which times steps and fits their cost (step_cost)
"""
