"""Threads that share a scan: every item once, whatever fails or is closed meanwhile (VEC-7, CON-6)."""

from threading import Barrier, Event, Thread, current_thread

import pytest

from kbretrieval.snapshot.scanners import Scanners


@pytest.mark.parametrize("threads", [1, 2, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_every_item_is_worked_off_once(threads: int, count: int) -> None:
    scanners, seen = Scanners(threads), []
    scanners.each(seen.append, range(count))
    assert sorted(seen) == list(range(count))
    scanners.close()


def test_the_caller_and_another_thread_work_at_the_same_time() -> None:
    scanners, names = Scanners(2), set()
    both = Barrier(2, timeout=20)

    def work(item: int) -> None:
        names.add(current_thread().name)
        both.wait()

    scanners.each(work, [1, 2])
    scanners.close()
    assert len(names) == 2


def test_what_fails_in_any_thread_is_raised_and_ends_the_scan() -> None:
    scanners = Scanners(3)

    def work(item: int) -> None:
        raise ValueError(item)

    with pytest.raises(ValueError, match=r"[0-9]"):
        scanners.each(work, list(range(20)))
    seen: list[int] = []
    scanners.each(seen.append, [1, 2, 3])
    scanners.close()
    assert sorted(seen) == [1, 2, 3]


def test_a_closed_one_starts_again_and_scans_at_once_do_not_meet() -> None:
    scanners, found = Scanners(3), {}

    def search(number: int) -> None:
        seen: list[int] = []
        for _ in range(50):
            scanners.each(seen.append, range(10))
        found[number] = sorted(seen)

    searching = [Thread(target=search, args=(number,)) for number in range(4)]
    for thread in searching:
        thread.start()
    scanners.close()
    for thread in searching:
        thread.join()
    scanners.close()
    assert list(found.values()) == [sorted(list(range(10)) * 50)] * 4


def test_nobody_works_any_more_once_a_failure_is_raised() -> None:
    scanners, working, ended = Scanners(3), Barrier(3, timeout=20), list[str]()

    def work(item: int) -> None:
        working.wait()
        name = current_thread().name
        if name.endswith("_0"):
            raise ValueError(name)
        if name.endswith("_1"):
            Event().wait(0.1)
        ended.append(name)

    with pytest.raises(ValueError, match="_0"):
        scanners.each(work, [1, 2, 3])
    assert len(ended) == 2
    scanners.close()
