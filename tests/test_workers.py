"""A file is tested by one worker: what it sets up once, all of its tests share."""

import pytest


@pytest.mark.parametrize("number", range(8))
def test_a_file_stays_on_one_worker(number, worker_id, tmp_path_factory):
    if worker_id == "master":
        pytest.skip("one process runs all tests: give -n 2")
    folder = tmp_path_factory.getbasetemp().parent / "workers"  # the workers of this run share it
    folder.mkdir(exist_ok=True)
    (folder / f"{worker_id} {number}").touch()
    assert {path.name.split()[0] for path in folder.iterdir()} == {worker_id}
