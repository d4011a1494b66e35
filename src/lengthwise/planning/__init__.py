"""Planning: the stages in a row.

lengths -> copies? -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

`make` tells the story; the other files are its sentences, in this order:

times           the copies of each sequence in an epoch
items           the sequences, copies or chunks that are batched, and their groups
fit             the choices and steps that all epochs share, found once for a run: by trial drafts (trial)
drafts          all items, or each rank's portion; giants leave, or stand alone
draft           a portion in order, and cut: bucket by bucket, or by whole steps (random_steps, random_rows)
custom          checks the answers of choices that the user wrote
cutter          an order is cut into exactly the batches that fill the steps
plan_warnings   a padding that was asked for and is missed
batches         members, padded lengths and costs of batches; steps of them, dealt to the ranks
resume          the batches that earlier runs took leave
plan            the result, and its file

Other files read plans, or make many: loss, evaluation; shapes and few_shapes; windows and window_epoch.

members   [k]   the items of one portion (of all, where there are no portions)
"""

from lengthwise.planning.make import make_plan as make_plan
