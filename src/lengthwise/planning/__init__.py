"""Planning: the verbs in a row.

lengths -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

items     [n, dims]   the lengths of what is planned: sequences, or chunks of them
members   [k]         the items of one portion (of all, where there are no portions)
"""

from lengthwise.planning.make import make_plan as make_plan
