"""Planning: the stages in a row.

lengths -> copies? -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

`make` runs all stages. The files, in the order in which they are read:

items           the sequences, copies (times) or chunks that are batched; their groups, and the giants among them
settle          the choices and the steps that all epochs of a run share, found once by trials (trial)
epoch           draws the portions of an epoch until they fill its steps, and deals their batches to the ranks
portion         orders items, cuts them into batches, and finds the costs of these: all items, or each rank's portion
steps           fills whole random steps, and cuts each into its batches
exact_count     cuts an order into exactly the batches that fill the steps
resume          removes the batches that earlier runs took
plan            the result, and its file

`custom` checks the answers of choices that the user wrote. `plan_warnings` warns if the padding that was asked for is
missed, or if the budget is in doubt. `given_step` plans one step from the sequences that it is given, and
`step_batches` cuts and deals its batches. Other files read plans, or make many: loss, evaluation; shapes and
few_shapes; windows, window_steps and window_epoch.

settled   the choices of a run: nothing is open any more
attempt   one draw of an epoch; another follows if it does not fit into the steps
giant     an item that alone costs more than the budget; it is dropped, stands alone in a batch, or is ordered as others
members   [k]   the items of one portion, or all items if there are no portions
"""

from lengthwise.planning.make import make_plan as make_plan
