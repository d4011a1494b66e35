"""Planning: the stages in a row.

lengths -> copies? -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

`make` tells the story; the other files are its sentences, in this order:

times          how often the epoch takes each sequence, where that is not once
fitted         what is found once for a run: the choices left open and an order that fits the lengths (fit, by trial
               drafts: trial, noise, joint), and how many steps every epoch has
oversize       sequences over the budget by themselves leave, or stand alone
drafts         all sequences, or each rank's own, drawn again where they need more steps than the epoch has
draft          a portion in order, and cut: bucket by bucket, or by whole steps (random_steps, random_rows)
custom         what a choice that the user wrote gives is checked
cutter         an order is cut into exactly as many batches as fill the steps
missed         a padding that was asked for and is missed is said
batches        what batches hold, what they are padded to, what they cost
tail           a last step that is not full is filled, or left out
grid           steps are dealt to the ranks, and put in order
rest           what earlier runs took leaves
plan           what comes of it, and its file
recent         what is found once for many plans is kept

Other files read plans, or make many: loss, evaluation; shapes and few_shapes; windows and window_epoch.

items     [n, dims]   the lengths of what is planned: sequences, copies or chunks of them
members   [k]         the items of one portion (of all, where there are no portions)
"""

from lengthwise.planning.make import make_plan as make_plan
