"""Planning: the stages in a row.

lengths -> copies? -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

`make` tells the story; the other files are its sentences, in this order:

times       how often the epoch takes each sequence, where that is not once
oversize    sequences over the budget by themselves leave, or stand alone
portions    all sequences, or each rank's own, by an order that is fitted once
fit         an order is fitted to the lengths: by trial drafts (trial, noise, joint), for windows once for all
            (shared_fit)
custom      what a choice that the user wrote gives is checked
draft       a portion in order, and cut: bucket by bucket, or by whole steps (steps, row_steps)
missed      a padding that was asked for and is missed is said
level       batches are cut a little smaller, so that they fill the last step
batches     what batches hold, what they are padded to, what they cost
tail        a last step that is not full is filled, or left out
grid        steps are dealt to the ranks, and put in order
rest        what earlier runs took leaves
plan        what comes of it, and its file
recent      what is found once for many plans is kept

Other files read plans, or make many: loss, evaluation; shapes and few_shapes; windows, window_epoch and step_counts.

items     [n, dims]   the lengths of what is planned: sequences, copies or chunks of them
members   [k]         the items of one portion (of all, where there are no portions)
"""

from lengthwise.planning.make import make_plan as make_plan
