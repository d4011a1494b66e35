"""The small cache of what is fitted once for a run: it keeps the most recent results, for several threads at a time."""

import pytest

from lengthwise.planning.settle import Recent


def test_any_result_is_kept_but_no_error():
    cache, calls = Recent(most=2), []
    for _ in range(3):
        assert cache.get("nothing", lambda: calls.append(1)) is None
        with pytest.raises(ZeroDivisionError):
            cache.get("error", lambda: 1 // 0)
    assert calls == [1]
    assert ("nothing" in cache, "error" in cache) == (True, False)
    cache.clear()
    assert "nothing" not in cache


class Interrupted:
    """A name: where it is looked up `after` more times, another thread keeps two other results."""

    def __init__(self, cache):
        self.cache, self.after = cache, 0

    def __hash__(self):
        self.after -= 1
        if self.after == 0:
            for other in ("first", "second"):
                self.cache.get(other, lambda: 0)
        return 1


@pytest.mark.parametrize("after", [1, 2])
def test_another_thread_may_make_room_at_any_time(after):
    cache = Recent(most=2)
    name = Interrupted(cache)
    assert [cache.get(each, lambda: 5) for each in (name, "before")] == [5, 5]
    name.after = after
    assert cache.get(name, lambda: 5) == 5
    assert name.after <= 0  # it was interrupted
    assert cache.get("last", lambda: 6) == 6
    assert sum(each in cache for each in (name, "before", "first", "second", "last")) == 2
