"""Batches drawn at random from a pool."""

from __future__ import annotations

from lengthwise._compile import kernel
from lengthwise._kernels.exact import power

_HALF = 2**32 - 1  # bits of a random word: the lower ones say how full the pool gets, the upper ones choose a sequence
_NUMBER = 2**33 - 1  # the lower bits of an entry of the pool; the level stands above, in thirty


@kernel
def draw_batches(sequences, sizes, ends, opened, fits, most, words, pool):
    """Puts `sequences` [n] in order, batch after batch, each batch drawn at random from those that came in.

    They come in level by level; level l ends before position ends[l]. What is drawn takes the place of what came in
    before. A batch is drawn as soon as so many wait
    that opened[l] should stay, and a random share of a batch more; but not before fits[l] wait, beside which none of
    the next level fits. At the last level they are drawn until none waits. A batch whose longest is of level l holds at
    most most[l], and fewer only where fits[l] is less than half of that. A sequence that is drawn and no longer fits
    begins the next batch, as it does where the batches are cut. `words` [n + 1], int64, are random in all their bits;
    the size of each sequence that is drawn, sizes[l] of its level, takes the place of a word that is used up. `pool`
    [room] has room for those that wait.
    """
    entered = waiting = taken = 0
    more = (words[0] & _HALF) * 2.0**-32
    begun = False  # the first of the pool begins the next batch
    for level in range(len(ends)):
        while entered < ends[level]:
            # With its level beside it, a sequence is one number, and one look into memory.
            pool[waiting] = level << 33 | sequences[entered]
            waiting += 1
            entered += 1
        last = level == len(ends) - 1
        apart = 2 * fits[level] <= most[level]  # the next level is far: what closes here need not be a full batch
        step = fits[level] if apart else most[level]
        while waiting > 0 and (last or waiting >= max(fits[level], opened[level] + more * step)):
            wanted = min(waiting, int(max(fits[level], waiting - opened[level]))) if apart else waiting
            count = longest = 0
            limit = wanted  # what the batch may hold, by its longest
            while count < limit:
                # The upper half of a word, times the number of those that wait, without its lower half: one of them.
                place = (((words[taken] >> 32) & _HALF) * waiting) >> 32
                if begun:
                    place, begun = 0, False
                one = pool[place]
                at = one >> 33
                if at > longest or count == 0:
                    if count > 0 and count >= most[at]:
                        pool[place], pool[0] = pool[0], one
                        begun = True
                        break
                    longest = at
                    limit = max(1, min(wanted, most[at]))
                waiting -= 1
                pool[place] = pool[waiting]
                sequences[taken] = one & _NUMBER
                words[taken] = sizes[at]
                taken += 1
                count += 1
            more = (words[taken] & _HALF) * 2.0**-32


@kernel
def shorter_in_pool(sizes, counts, opened, stay, most, looked_at, shorter):
    """By how much batches drawn at random from a pool are shorter than the level they are drawn at, on average.

    So many sequences as `counts` [levels] stand at `sizes` [levels], rising. Of each level and those below, opened[s]
    wait beyond it, which is a share of stay[s], both of levels - 1; and most[s] fill a batch there. Writes `shorter`,
    of the levels `looked_at`, both [k].
    """
    half, halved = 0.5, 1.0
    for index in range(len(looked_at)):
        level = looked_at[index]
        before = opened[level - 1] if level else 0.0
        after = opened[level] if level < len(opened) else 0.0
        batch = most[level]
        for turn in range(3):  # how many are drawn depends on the longest, and the longest on how many
            # When a batch is drawn; where several are, at the last level above all, between the first and the last.
            waiting = max(batch, after + batch / 2.0, (before + counts[level] + after) / 2.0)
            apart = waiting - (batch - 1.0) / 2.0  # none is drawn twice: on average so many are left to draw from
            share = waiting / (before + counts[level])
            if turn < 2:
                # The lowest level beyond which half of the batches hold no sequence.
                if batch != halved:
                    half, halved = power(0.5, 1.0 / batch), batch
                lowest, still = level, share
                while lowest and max(0.0, 1.0 - (waiting - still * opened[lowest - 1]) / apart) > half:
                    lowest -= 1
                    still *= stay[lowest]
                if most[lowest] != batch:
                    batch = most[lowest]
                    continue
            whole, part = int(batch), batch % 1.0
            shorter[index] = 0.0
            for below in range(level - 1, -1, -1):
                longer = waiting - share * opened[below]  # of those that wait, they are longer than level `below`
                no_longer = max(0.0, 1.0 - longer / apart)
                # no_longer ** batch, as `power` has it: in Python, a call would take longer than what it does.
                none_longer, times = power(no_longer, part) if part > 0.0 else 1.0, whole
                while times:
                    if times & 1:
                        none_longer *= no_longer
                    no_longer *= no_longer
                    times >>= 1
                shorter[index] += (sizes[below + 1] - sizes[below]) * none_longer
                if none_longer < 1e-7:
                    break
                share *= stay[below]  # of those that waited there, so many still wait above
            break
