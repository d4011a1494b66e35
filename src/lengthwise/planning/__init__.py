"""Planning: the stages in a row.

lengths -> copies? -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

`make` tells the story; the other files are its sentences, in this order:

times          how often the epoch takes each sequence, where that is not once
fit            what is found once for a run: choices that were left open, an order that fits the lengths (by trial
               drafts: trial, joint), and how many steps every epoch has
drafts         all sequences, or each rank's own; those over the budget by themselves leave, or stand alone; drawn again
               where they need more steps than the epoch has
draft          a portion in order, and cut: bucket by bucket, or by whole steps (random_steps, random_rows)
custom         what a choice that the user wrote gives is checked
cutter         an order is cut into exactly as many batches as fill the steps
missed         a padding that was asked for and is missed is said
batches        what batches hold, what they are padded to, what they cost; steps of them are dealt to the ranks
rest           what earlier runs took leaves
plan           what comes of it, and its file

Other files read plans, or make many: loss, evaluation; shapes and few_shapes; windows, window_fit and window_epoch.

items     [n, dims]   the lengths of what is planned: sequences, copies or chunks of them
members   [k]         the items of one portion (of all, where there are no portions)
"""

from lengthwise.planning.make import make_plan as make_plan
