# SPDX-License-Identifier: Apache-2.0
"""cufile.Batch: bytes, events, room, cancelling, and what stays alive."""
import gc
import os
import threading
import weakref

import pytest

SIZE = 10007


def test_a_batch_reads_and_writes_and_tells_each_entry_once(cufile, place, tmp_path):
    count = 40
    data = os.urandom(count * SIZE)
    with cufile.open(tmp_path / "f", "w+") as file, cufile.Batch(count) as batch:
        out = [place.array(SIZE, data[i * SIZE:(i + 1) * SIZE]) for i in range(count)]
        for i, array in enumerate(out):
            batch.write(file, place.give(array), file_offset=i * SIZE, cookie=("w", i))
        assert batch.outstanding == 0
        assert batch.submit() == count and batch.outstanding == count
        events = batch.wait()
        assert sorted(event.cookie for event in events) == [("w", i) for i in range(count)]
        assert {event.status for event in events} == {"COMPLETE"}
        assert {(event.nbytes, event.error) for event in events} == {(SIZE, None)}
        assert batch.outstanding == 0 and batch.wait() == []
        back = [place.array(SIZE) for _ in range(count)]
        for i, array in enumerate(back):
            batch.read(file, place.give(array), SIZE - 7, i * SIZE, 7)
        batch.submit()
        taken = 0
        while batch.outstanding:
            taken += len(batch.wait(1, 10))
        assert taken == count
    assert (tmp_path / "f").read_bytes() == data
    for i, array in enumerate(back):
        assert array.get()[7:] == data[i * SIZE:(i + 1) * SIZE - 7]
        assert array.guards_whole()


def test_a_read_at_the_end_of_the_file_is_a_short_event(cufile, place, data_file):
    path, data = data_file(1000)
    array = place.array(4096)
    with cufile.open(path) as file, cufile.Batch(1) as batch:
        batch.read(file, place.give(array), file_offset=900)
        batch.submit()
        [event] = batch.wait()
    assert (event.status, event.nbytes) == ("COMPLETE", 100)
    assert array.get()[:100] == data[900:]


def test_an_entry_that_fails_is_an_event_with_its_error(
        cufile, place, data_file, full_disk):
    path, data = data_file(4096)
    array = place.array(4096, os.urandom(4096))
    with cufile.open(path, "r+") as file, cufile.Batch(2) as batch:
        batch.read(file, bytearray(10), cookie="good")
        batch.write(file, place.give(array), file_offset=1 << 20, cookie="bad")
        with full_disk():
            batch.submit()
            events = {event.cookie: event for event in batch.wait()}
    assert events["good"].error is None and events["good"].nbytes == 10
    bad = events["bad"]
    assert bad.status == "FAILED" and bad.nbytes == 0
    assert bad.error.name == "EFBIG" and bad.error.filename == path
    assert "4096 bytes at 1048576" in str(bad.error)
    assert path.read_bytes() == data


def test_an_entry_that_cannot_be_is_refused_with_all_others(
        cufile, place, data_file):
    path, _ = data_file(4096)
    array = place.array(64)
    before = array.get()
    with cufile.open(path) as file, cufile.Batch(2) as batch:
        batch.read(file, place.give(array))
        batch.write(file, place.give(array))
        with pytest.raises(cufile.CuFileError, match="submitting 2 entries") as caught:
            batch.submit()
        assert caught.value.name == "CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR"
        assert batch.outstanding == 0
        assert array.get() == before
        batch.cancel()
        batch.read(file, place.give(array))
        assert batch.submit() == 1
        assert [event.nbytes for event in batch.wait()] == [64]


def test_entries_that_find_no_room_wait_for_the_next_submit(cufile, data_file):
    path, data = data_file(3 * SIZE)
    arrays = [bytearray(SIZE) for _ in range(3)]
    with cufile.open(path) as file, cufile.Batch(2) as batch:
        for i, array in enumerate(arrays[:2]):
            batch.read(file, array, file_offset=i * SIZE)
        batch.submit()
        batch.read(file, arrays[2], file_offset=2 * SIZE)
        with pytest.raises(cufile.CuFileError) as caught:
            batch.submit()
        assert caught.value.name == "CU_FILE_BATCH_FULL"
        assert "submitting 1 entries to a batch of 2 that has 2: " in str(caught.value)
        assert batch.outstanding == 2
        assert len(batch.wait()) == 2
        assert batch.submit() == 1
        assert [event.nbytes for event in batch.wait()] == [SIZE]
    assert b"".join(arrays) == data


def test_nothing_is_submitted_where_nothing_was_added(cufile):
    with cufile.Batch(4) as batch:
        assert batch.submit() == 0 and batch.wait() == []


def test_a_batch_keeps_arrays_and_files_alive(cufile, data_file):
    path, data = data_file(SIZE)

    class Array(bytearray):
        pass

    array = Array(SIZE)
    gone = weakref.ref(array)
    file = cufile.open(path)
    with cufile.Batch(1) as batch:
        batch.read(file, array)
        batch.submit()
        del array, file
        gc.collect()
        seen = memoryview(gone())
        [event] = batch.wait()
        assert event.nbytes == SIZE
        assert bytes(seen) == data
        del seen
        gc.collect()
        assert gone() is None


def test_a_cancelled_batch_has_no_events_and_can_be_used_again(cufile, data_file):
    path, data = data_file(SIZE)
    with cufile.open(path) as file, cufile.Batch(8) as batch:
        for _ in range(8):
            batch.read(file, bytearray(SIZE))
        batch.submit()
        batch.cancel()
        assert batch.outstanding == 0
        array = bytearray(SIZE)
        batch.read(file, array)
        batch.submit()
        assert len(batch.wait()) == 1 and bytes(array) == data


class Behind:
    """The library; do() runs as soon as the call of that name is back."""

    def __init__(self, library, name, do):
        self._library, self._name, self._do = library, name, do

    def __getattr__(self, name):
        call = getattr(self._library, name)
        if name != self._name:
            return call

        def both(*arguments):
            status = call(*arguments)
            self._do()
            return status
        return both


def test_a_cancel_keeps_what_another_thread_submits_meanwhile(cufile, data_file):
    path, data = data_file(SIZE)
    array = bytearray(SIZE)
    with cufile.open(path) as file, cufile.Batch(2) as batch:
        def submit():
            batch.read(file, array, cookie="mine")
            batch.submit()

        def begin():
            other.start()
            # as far as it gets: it may have to wait for the cancel
            other.join(1)

        other = threading.Thread(target=submit)
        batch._library = Behind(batch._library, "cuFileBatchIOCancel", begin)
        batch.cancel()
        other.join()
        assert batch.outstanding == 1
        assert [event.cookie for event in batch.wait()] == ["mine"]
    assert array == data


def test_a_cancel_drops_what_a_submit_still_waits_to_begin(cufile, data_file, monkeypatch):
    path, _ = data_file(SIZE)
    with cufile.open(path) as file, cufile.Batch(2) as batch:
        batch.read(file, bytearray(SIZE))
        monkeypatch.setattr(cufile.Memory, "wait", lambda memory: batch.cancel())
        assert batch.submit() == 0 and batch.outstanding == 0 and batch.wait() == []


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_events_that_a_cancel_overtakes_are_dropped(cufile, data_file, end):
    path, _ = data_file(SIZE)
    with cufile.open(path) as file, cufile.Batch(2) as batch:
        batch.read(file, bytearray(SIZE))
        batch.submit()
        batch._library = Behind(batch._library, "cuFileBatchIOGetStatus",
                                getattr(batch, end))
        assert batch.wait() == [] and batch.outstanding == 0


def test_arrays_that_go_with_a_cancel_may_use_the_batch(cufile, data_file):
    path, _ = data_file(SIZE)

    class Array(bytearray):
        def __del__(self):
            batch.read(file, bytearray(SIZE))

    with cufile.open(path) as file, cufile.Batch(2) as batch:
        batch.read(file, Array(SIZE))
        batch.cancel()
        assert batch.submit() == 1 and len(batch.wait()) == 1


@pytest.mark.parametrize("timeout, given", [
    (2.5, 2.5), (0, 0), (-0.001, 0), (-1.5, 0), (1e30, 1 << 31),
    (float("inf"), 1 << 31)])
def test_a_timeout_is_as_long_as_it_says_and_none_below_zero(
        cufile, data_file, timeout, given):
    path, _ = data_file(SIZE)
    told = []

    class Listening:
        def __init__(self, library):
            self._library = library

        def __getattr__(self, name):
            call = getattr(self._library, name)
            if name != "cuFileBatchIOGetStatus":
                return call

            def both(*arguments):
                told.append(arguments[4]._obj)
                return call(*arguments)
            return both

    with cufile.open(path) as file, cufile.Batch(1) as batch:
        batch.read(file, bytearray(SIZE))
        batch.submit()
        batch._library = Listening(batch._library)
        batch.wait(timeout=timeout)
    limit, = told
    assert limit.tv_sec + limit.tv_nsec / 1e9 == given


def test_a_closed_batch_refuses_and_closing_drops_what_runs(cufile, data_file):
    path, _ = data_file(SIZE)
    with cufile.open(path) as file:
        batch = cufile.Batch(2)
        batch.read(file, bytearray(SIZE))
        batch.submit()
        batch.close()
        batch.close()
        for call in (lambda: batch.read(file, bytearray(1)), batch.submit,
                     batch.wait, batch.cancel):
            with pytest.raises(ValueError, match="batch is closed"):
                call()


def test_arguments_are_checked_when_an_entry_is_added(cufile, data_file):
    path, _ = data_file(SIZE)
    with cufile.open(path) as file, cufile.Batch(2) as batch:
        with pytest.raises(ValueError, match="17 bytes"):
            batch.read(file, bytearray(16), 17)
        with pytest.raises(TypeError, match="read-only"):
            batch.read(file, bytes(16))
        file.close()
        with pytest.raises(ValueError, match=f"{path}: the file is closed"):
            batch.read(file, bytearray(16))
        assert batch.submit() == 0


@pytest.mark.parametrize("capacity", [0, 1 << 31])
def test_a_batch_of_no_or_too_many_entries_is_refused(cufile, capacity):
    before = cufile.driver.use_count()
    with pytest.raises(cufile.CuFileError, match=f"batch of {capacity}"):
        cufile.Batch(capacity)
    assert cufile.driver.use_count() == before
