"""What is said of data that were left out: how many, the first of them, and what would keep them."""

from lengthwise_recipes.skipped import NO_OPTION, tell


def test_nothing_is_said_where_nothing_was_left_out():
    assert tell({"skipped": []}) == []


def test_the_advice_of_the_data_is_told_or_else_that_there_is_no_option():
    told = {"skipped": ["first."] + 841 * ["other."], "advice": ["Do this."]}
    assert tell(told) == ["842 left out, the first: first.", "Do this."]
    assert tell({"skipped": ["first."]}) == ["1 left out, the first: first.", NO_OPTION]
