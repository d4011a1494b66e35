"""Planning: the stages in a row.

lengths -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

`make` tells the story; the other files are its sentences, in this order:

oversize    sequences over the budget by themselves leave, or stand alone
portions    all sequences, or each rank's own, by an order that is fitted once
own         what a choice of the user's gives is checked
draft       a portion in order, and cut
missed      a padding that was asked for and is missed is said
batches     what batches hold, what they are padded to, what they cost
tail        a last step that is not full is filled, or left out
grid        steps are dealt to the ranks, and put in order
rest        what earlier runs took leaves

items     [n, dims]   the lengths of what is planned: sequences, or chunks of them; in the type they came in, such as
                      uint16, so that a sum or a product of them must be asked for in int64
members   [k]         the items of one portion (of all, where there are no portions)
"""

from lengthwise.planning.make import make_plan as make_plan
