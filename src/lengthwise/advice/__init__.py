"""What a step costs, and what to train with on this machine.

search            `advise`: question, contenders; answer, sentences and snippet are what it found
step_timing       `measure_step`: step_checks; step_cost is what comes of it
"""
