"""What a step costs, and what to train with on this machine.

search            `advise`: question, contenders, row, rule; answer, sentences and snippet write what it found
step_timing       `measure_step`: trial_shapes, step_checks; step_cost and fit are what comes of it, show prints it
"""
