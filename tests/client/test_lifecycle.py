# SPDX-License-Identifier: Apache-2.0
"""A process's life with libcufile.so.0: opened and closed without end, ended
from everywhere with work in flight, forked, replaced, preloaded.

OCF_ROUNDS says how many cycles; ./dev lifecycle asks for 10000.
"""
import os
import subprocess
import sys
import time

from test_process import CLEAN, LIB, SANITIZED, Case, main

ROUNDS = int(os.environ.get("OCF_ROUNDS", "400"))
FROM_EVERYWHERE = ("exit_in_flight", "exit_of_another_thread_in_flight",
                   "quick_exit_in_flight")


class Life(Case):
    """Runs the scenarios of life.c."""

    def live(self, scenario, rounds=ROUNDS, **environment):
        done = subprocess.run(
            [os.environ["OCF_LIFE"], scenario, str(self.dir)],
            env=self.environment(fake=True, OCF_ROUNDS=rounds,
                                 OCF_IMPOSTOR=os.environ["OCF_IMPOSTOR"],
                                 CUFILE_LOGFILE_PATH=self.log,
                                 CUFILE_LOGGING_LEVEL="WARN", **environment),
            cwd=self.dir, capture_output=True, text=True, timeout=500,
            check=False)
        said = f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("done\n", done.stdout, said)
        return done.stdout, done.stderr

    def said(self):
        return self.log.read_text() if self.log.exists() else ""


class Cycles(Life):
    """Behaviour: opens and closes count, and leave nothing."""

    def test_open_and_close_without_end_leave_nothing(self):
        if SANITIZED and ROUNDS < 5000:
            self.skipTest("a sanitizer keeps freed memory for a while")
        # the fake keeps dead handles for ever unless they may come back
        stdout, stderr = self.live("reopen", FAKECUDA_REUSE_HANDLES=1,
                                   MALLOC_ARENA_MAX=1)
        print(stdout.splitlines()[0])
        # the program's own memory and its retain of the context
        self.assertEqual(self.report(stderr), (2, 0, 0))

    def test_a_plugin_that_opens_us_comes_and_goes(self):
        # each constructor takes 30 ms
        self.live("load_and_unload", rounds=min(ROUNDS // 10, 300))

    def test_threads_that_come_and_go_leave_nothing(self):
        if SANITIZED:
            self.skipTest("a sanitizer remembers threads")
        print(self.live("threads_come_and_go",
                        MALLOC_ARENA_MAX=1)[0].splitlines()[0])


class Ends(Life):
    """Exit with work in flight neither hangs nor crashes."""

    def test_from_every_thread_whether_the_driver_goes_or_not(self):
        for scenario in FROM_EVERYWHERE:
            for gone in (0, 1):
                for _ in range(1 + ROUNDS // 400):
                    with self.subTest(scenario=scenario, gone=gone):
                        self.live(scenario, FAKECUDA_DEINIT_AT_EXIT=gone)

    def test_the_main_thread_may_leave_first(self):
        self.live("main_thread_leaves_first")

    def test_exit_handlers_may_go_on_working(self):
        for gone in (0, 1):
            stdout, stderr = self.live("work_in_exit_handlers",
                                       FAKECUDA_DEINIT_AT_EXIT=gone)
            self.assertIn("worked late\n", stdout)
            self.assertEqual(self.report(stderr)[1:], (0, 0))

    def test_static_constructors_and_destructors_may_work(self):
        for gone in (0, 1):
            stdout, stderr = self.live("work_in_constructor_and_destructor",
                                       OCF_CONSTRUCT=self.dir,
                                       FAKECUDA_DEINIT_AT_EXIT=gone)
            self.assertIn("destructed\n", stdout)
            self.assertEqual(self.report(stderr)[1:], (0, 0))

    def test_a_constructor_may_end_the_process(self):
        self.live("one_library", OCF_CONSTRUCT=self.dir,
                  OCF_EXIT_IN_CONSTRUCTOR=1)

    def test_exec_takes_nothing_along(self):
        self.live("exec_in_flight")


class Children(Life):
    """Before, during and after."""

    def test_of_a_parent_that_never_opened(self):
        self.live("fork_before_anything")

    def test_of_a_parent_that_has_closed(self):
        self.live("fork_after_close")

    def test_of_a_parent_with_a_batch_and_a_stream_at_work(self):
        self.live("fork_with_batch_and_stream")

    def test_of_children_of_children(self):
        self.live("fork_of_a_fork")

    def test_of_an_exit_handler(self):
        stdout, _ = self.live("fork_in_an_exit_handler",
                              FAKECUDA_DEINIT_AT_EXIT=1)
        self.assertIn("forked late\n", stdout)

    def test_by_spawn_and_vfork_take_nothing_along(self):
        self.live("spawn_in_flight")


class Beside(Life):
    """Other libraries, and programs that want nothing of us."""

    def test_a_second_libcufile_is_told_once_an_open(self):
        self.live("two_libraries")
        lines = [line for line in self.said().splitlines()
                 if os.environ["OCF_IMPOSTOR"] in line]
        self.assertEqual(len(lines), 1, self.said())
        self.assertRegex(lines[0], r" WARN +session:\d+ driver open: /.* is "
                                   r"in this process too: ")

    def test_one_libcufile_is_no_news(self):
        self.live("one_library")
        self.assertEqual(self.said(), "")

    def start_ms(self, **environment):
        begin = time.monotonic_ns()
        subprocess.run(["/bin/true"], env={**CLEAN, **environment}, check=True)
        return (time.monotonic_ns() - begin) / 1e6

    def test_a_preloaded_program_that_needs_no_cufile_starts_as_quickly(self):
        if SANITIZED:
            self.skipTest("a sanitized library cannot be preloaded")
        # in turns, and the best of many: other work only ever makes it slower
        pairs = [(self.start_ms(), self.start_ms(LD_PRELOAD=LIB))
                 for _ in range(41)]
        plain, preloaded = map(min, zip(*pairs))
        print(f"start {plain:.2f} ms, preloaded {preloaded:.2f} ms")
        # four small libraries to map: a millisecond, and never a driver;
        # a machine that is slow with the one is slow with the other
        self.assertLess(preloaded - plain, max(10, 10 * plain))


if __name__ == "__main__":
    sys.exit(main())
