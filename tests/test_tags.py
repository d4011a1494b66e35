"""Tags name choices in JSON: every choice has one, and moving a file changes none."""

from dataclasses import is_dataclass

import pytest

import lengthwise as lw
from choices import ARRANGEMENTS, CHUNKS, COSTS, DEALS, ORDERS, cuts
from lengthwise.choices import batching as tags

CHOICES = [
    choice
    for table in (ARRANGEMENTS, CHUNKS, COSTS, DEALS, ORDERS, cuts(900, 90))
    for choice in table.values()
    if is_dataclass(choice)
]


def test_every_choice_has_a_tag_and_every_tag_a_choice():
    assert {tags.tag_of(choice) for choice in CHOICES} == set(tags.CLASSES)


@pytest.mark.parametrize("tag", tags.CLASSES)
def test_a_tag_is_the_verb_and_the_name_that_the_choice_had_first(tag):
    verb, name = tag.split(".")
    assert verb in ("order", "cut", "deal", "arrange", "cost", "chunk")
    assert tags.CLASSES[tag] is getattr(lw, name)


def test_what_extends_a_choice_has_none():
    class Mine(lw.MaxEntropy):
        pass

    assert tags.tag_of(Mine(padding=0.1)) is None
