"""Planning: the stages in a row.

lengths -> copies? -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

`make` runs all stages. The other files, in the order of the stages:

times           the copies of each sequence in an epoch
items           the sequences, copies or chunks that are batched, and their groups
fit             the choices and steps that all epochs share, found once for a run by trial drafts (trial)
drafts          all items, or each rank's portion; sequences over the budget leave, or stand alone
draft           orders a portion and cuts it: bucket by bucket, or by whole steps (random_steps, random_rows)
custom          checks the answers of choices that the user wrote
cutter          cuts an order into exactly the batches that fill the steps
plan_warnings   warns if the padding that was asked for is missed, or if the budget is in doubt
batches         members, padded lengths and costs of batches; steps of them, dealt to the ranks
resume          removes the batches that earlier runs took
plan            the result, and its file

Other files read plans, or make many: loss, evaluation; shapes and few_shapes; windows and window_epoch.

members   [k]   the items of one portion, or all items if there are no portions
"""

from lengthwise.planning.make import make_plan as make_plan
