"""What was found once is kept: the most recent of it, for several threads at a time."""

import pytest

from lengthwise.planning.fit import Recent, Same


def test_what_was_asked_for_last_is_kept_and_found_once():
    kept, found = Recent(most=2), []

    def ask(about):
        return kept.get(about, lambda: found.append(about) or -about)

    assert [ask(about) for about in (1, 2, 1, 3, 1, 2)] == [-1, -2, -1, -3, -1, -2]
    assert found == [1, 2, 3, 2]
    kept.clear()
    assert 1 not in kept


def test_nothing_can_be_kept_too():
    kept, found = Recent(most=1), []
    for _ in range(3):
        assert kept.get("about", lambda: found.append(1)) is None
    assert found == [1]


def test_what_raises_is_not_kept():
    kept = Recent(most=1)
    for _ in range(2):
        try:
            kept.get("about", lambda: 1 // 0)
        except ZeroDivisionError:
            assert "about" not in kept


class Interrupted:
    """What something is kept about; where it is looked up `after` more times, another thread keeps two other things."""

    def __init__(self, kept):
        self.kept, self.after = kept, 0

    def __hash__(self):
        self.after -= 1
        if self.after == 0:
            for other in ("first", "second"):
                self.kept.get(other, lambda: 0)
        return 1


@pytest.mark.parametrize("after", [1, 2])
def test_another_thread_may_make_room_at_any_time(after):
    kept = Recent(most=2)
    about = Interrupted(kept)
    assert [kept.get(each, lambda: 5) for each in (about, "before")] == [5, 5]
    about.after = after
    assert kept.get(about, lambda: 5) == 5
    assert about.after <= 0  # it was interrupted
    assert kept.get("last", lambda: 6) == 6
    assert sum(each in kept for each in (about, "before", "first", "second", "last")) == 2


def test_only_the_same_object_is_the_same():
    first, second = [1], [1]
    assert Same(first) == Same(first) != Same(second)
    assert len({Same(first), Same(first), Same(second)}) == 2
