# SPDX-License-Identifier: Apache-2.0
"""Whole processes that use libcufile.so.0: with a driver, without one, with
one that fails, at exit, in forks, under LD_PRELOAD, and what they log.

The programs are built beside this file; each test runs one scenario in an
environment of its own. The last lines count as cmocka's do.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIB = os.environ["OCF_LIB"]
SANITIZED = os.environ.get("OCF_SANITIZED") == "1"
FAKE_DIR = str(pathlib.Path(os.environ["OCF_FAKECUDA"]).parent)


def clean_environment():
    """Nothing of the caller's configuration, log or driver, and none of the
    library directories that the build puts in every test's way."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CUFILE_", "FAKECUDA_", "OCF_", "LD_"))}
    root = os.environ["OCF_BUILD_ROOT"]
    paths = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    kept = [path for path in paths if path and not path.startswith(root)]
    if kept:
        env["LD_LIBRARY_PATH"] = ":".join(kept)
    # many scenarios end without a close, which is what they are about
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return env


CLEAN = clean_environment()
NO_PRELOAD = (SANITIZED or " " in LIB,
              "neither a sanitized library nor a path with a blank is preloaded")

LINE = re.compile(
    r"^ \d\d-\d\d-\d{4} \d\d:\d\d:\d\d:\d{3} \[pid=\d+ tid=\d+\] "
    r"(NOTICE|ERROR|WARN|INFO|DEBUG|TRACE) +[a-z_]+:\d+ \S.*$")
LEVELS = ["NOTICE", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"]


def has_system_driver():
    """True where a libcuda is installed that no test put there."""
    code = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    return subprocess.run([sys.executable, "-c", code], env=CLEAN, check=False,
                          capture_output=True).returncode == 0


SYSTEM_DRIVER = has_system_driver()


class Case(unittest.TestCase):
    """A directory to work in, and a way to run a program there."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="opencufile-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.json = self.dir / "cufile.json"
        self.json.write_text("{}\n")
        self.log = self.dir / "x.log"

    def environment(self, fake=False, **more):
        env = {**CLEAN, "CUFILE_ENV_PATH_JSON": str(self.json),
               "PLUGIN": os.environ["OCF_PLUGIN"]}
        if fake:
            paths = [FAKE_DIR, env.get("LD_LIBRARY_PATH", "")]
            env["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
            env["FAKECUDA_REPORT"] = "1"
            env["FAKECUDA_STRICT"] = "1"
        env.update({name: str(value) for name, value in more.items()})
        return env

    def run_program(self, *command, **environment):
        return subprocess.run(command, env=self.environment(**environment),
                              cwd=self.dir, capture_output=True, text=True,
                              timeout=400, check=False)

    def run_client(self, scenario, **environment):
        """A scenario that must go well; -> (stdout, stderr)."""
        done = self.run_program(os.environ["OCF_CLIENT"], scenario,
                                str(self.dir), **environment)
        said = f"{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("done\n", done.stdout, said)
        return done.stdout, done.stderr

    def report(self, stderr):
        """What the fake driver counted: (leaks, complaints, late calls)."""
        found = re.findall(r"(\d+) leaks, (\d+) complaints, (\d+) late calls",
                           stderr)
        self.assertEqual(len(found), 1, stderr)
        return tuple(map(int, found[0]))


class WithoutADriver(Case):
    """Behaviour: "open ... also ok with no GPU and no libcuda at all"."""

    def test_host_memory_is_read_and_written(self):
        if SYSTEM_DRIVER:
            self.skipTest("this machine has a libcuda")
        _, stderr = self.run_client("host")
        self.assertEqual(stderr, "")

    def test_a_bar_size_is_refused_5029(self):
        if SYSTEM_DRIVER:
            self.skipTest("this machine has a libcuda")
        stdout, _ = self.run_client("bar")
        self.assertIn("bar 5029 0\n", stdout)

    def test_a_driver_without_a_gpu_is_no_driver(self):
        stdout, _ = self.run_client("bar", fake=True, FAKECUDA_GPUS=0)
        self.assertIn("bar 5029 0\n", stdout)

    def test_a_driver_that_does_not_start_is_no_driver(self):
        stdout, _ = self.run_client("bar", fake=True,
                                    FAKECUDA_PLAN="cuInit:*=999")
        self.assertIn("bar 5029 0\n", stdout)

    def test_host_memory_does_not_load_the_driver_that_there_is(self):
        _, stderr = self.run_client("host", fake=True)
        self.assertEqual(stderr, "")

    def test_no_thread_is_started_by_an_open_and_host_io(self):
        if SANITIZED:
            self.skipTest("a sanitizer has threads of its own")
        self.run_client("threads", fake=True)


class WithADriver(Case):
    """The GPU is given back whole, and the driver is not misused."""

    def test_a_round_through_gpu_memory_leaks_nothing_of_ours(self):
        _, stderr = self.run_client("gpu_io", fake=True)
        # the one retain of the primary context is the program's
        self.assertEqual(self.report(stderr), (1, 0, 0))

    def test_a_driver_that_comes_later_is_found(self):
        _, stderr = self.run_client("gpu_later", fake=True)
        self.assertEqual(self.report(stderr)[1:], (0, 0))


@unittest.skipIf(SANITIZED, "a sanitizer has threads and memory of its own")
class AtRest(Case):
    """Who asks nothing of the library pays nothing for it."""

    def test_an_open_costs_less_than_a_mib_and_no_thread(self):
        self.run_client("rest_after_open", fake=True)

    def test_after_much_work_nothing_runs_or_spins(self):
        self.run_client("rest", fake=True)


class AtExit(Case):
    """Behaviour: "close, exit, dlclose, static destructors"."""

    def test_an_exit_without_a_close_calls_nothing_late(self):
        _, stderr = self.run_client("exit_without_close", fake=True,
                                    FAKECUDA_DEINIT_AT_EXIT=1)
        self.assertEqual(self.report(stderr)[1:], (0, 0))

    def close_late(self, scenario):
        stdout, stderr = self.run_client(scenario, fake=True,
                                         FAKECUDA_DEINIT_AT_EXIT=1)
        self.assertIn("closed\n", stdout)
        return self.report(stderr)

    def test_a_close_in_a_static_destructor_calls_no_driver(self):
        self.assertEqual(self.close_late("close_in_destructor")[1:], (0, 0))

    def test_a_close_in_an_early_exit_handler_calls_no_driver(self):
        self.assertEqual(self.close_late("close_in_early_atexit")[1:], (0, 0))

    def test_a_close_in_a_late_exit_handler_gives_the_gpu_back(self):
        leaks, complaints, late = self.close_late("close_in_late_atexit")
        # the program's own: its memory and its retain of the context
        self.assertEqual((leaks, complaints, late), (2, 0, 0))

    def test_a_client_may_go_on_when_the_driver_is_gone(self):
        stdout, stderr = self.run_client("use_after_the_driver_is_gone",
                                         fake=True, FAKECUDA_DEINIT_AT_EXIT=1)
        self.assertIn("closed\n", stdout)
        self.assertEqual(self.report(stderr)[1:], (0, 0))

    def test_a_foreign_close_at_exit_is_harmless(self):
        for gone in (0, 1):
            _, stderr = self.run_client("foreign_close_at_exit", fake=True,
                                        FAKECUDA_DEINIT_AT_EXIT=gone)
            self.assertEqual(self.report(stderr)[1:], (0, 0))


class InTheLoader(Case):
    """clients.md 0: rules 7 to 9."""

    def test_an_open_inside_a_constructor_works(self):
        self.run_client("open_in_constructor")

    def test_an_open_inside_a_constructor_and_other_threads_do_not_lock_up(self):
        self.run_client("open_in_constructor_while_others_look", fake=True)

    def test_loading_starts_nothing_and_may_be_repeated(self):
        done = self.run_program(os.environ["OCF_LATE"], LIB)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"),
                         done.stderr)

    @unittest.skipIf(*NO_PRELOAD)
    def test_children_under_preload_print_nothing_and_load_no_driver(self):
        for command in (["true"], ["sh", "-c", "ls / >/dev/null; true"]):
            done = self.run_program(*command, fake=True, LD_PRELOAD=LIB)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (0, "", ""))
        done = self.run_program("cat", "/proc/self/maps", fake=True,
                                LD_PRELOAD=LIB)
        self.assertIn("libcufile.so", done.stdout)
        self.assertNotIn("libcuda", done.stdout)
        self.assertEqual(list(self.dir.iterdir()), [self.json])

    def test_a_program_runs_on_the_library_it_was_linked_with(self):
        done = self.run_program(os.environ["OCF_PRELOADED"])
        self.assertIn("version 1 open 5030", done.stdout, done.stderr)

    @unittest.skipIf(*NO_PRELOAD)
    def test_preload_takes_the_place_of_another_libcufile(self):
        done = self.run_program(os.environ["OCF_PRELOADED"], LD_PRELOAD=LIB)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0],
                         "version 1190 open 0 close 0 again 5001")
        self.assertEqual(lines[1:], [f"library {os.path.realpath(LIB)}"])


class Forks(Case):
    """Behaviour: "a forked child can use host memory"."""

    def test_a_child_uses_host_memory(self):
        self.run_client("fork_host")

    def test_a_child_is_told_that_gpu_memory_is_not_its_own(self):
        _, stderr = self.run_client("fork_gpu", fake=True)
        # the parent, which goes on, is the only one to report
        self.assertEqual(self.report(stderr)[1:], (0, 0))

    def test_a_child_may_use_a_gpu_that_its_parent_never_used(self):
        self.run_client("fork_before_the_gpu", fake=True)

    def test_gpu_memory_that_we_never_saw_is_a_clear_error_too(self):
        self.run_client("fork_gpu_unseen", fake=True)

    def test_a_child_of_a_busy_parent_does_not_hang(self):
        self.run_client("fork_busy", fake=True)


class Explain(Case):
    """CUFILE_EXPLAIN: each new kind of route is one line on stderr."""

    def routes(self, text):
        return [line for line in text.splitlines() if "memory, handle" in line]

    def test_each_kind_of_route_is_told_once_on_stderr(self):
        _, stderr = self.run_client("host", CUFILE_EXPLAIN=1)
        lines = self.routes(stderr)
        self.assertEqual(len(lines), len(set(lines)))
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, r"^cufile: (read|write) host memory, handle "
                                   r"\d+: path host, .*\(null: .*; staged: .*\)$")

    def test_the_log_has_the_same_text(self):
        _, stderr = self.run_client("host", CUFILE_EXPLAIN=1,
                                    CUFILE_LOGFILE_PATH=self.log,
                                    CUFILE_LOGGING_LEVEL="INFO")
        told = [line.removeprefix("cufile: ") for line in self.routes(stderr)]
        logged = [line.split("route: ")[1] for line in
                  self.routes(self.log.read_text())]
        self.assertTrue(told)
        self.assertEqual(told, logged)

    def test_nothing_is_told_unless_somebody_asks(self):
        for value in ("0", "false", ""):
            _, stderr = self.run_client("host", CUFILE_EXPLAIN=value)
            self.assertEqual(stderr, "")


class Direct(Case):
    """Large O_DIRECT requests, on file systems and kernels of all kinds."""

    def run_direct(self, path, *more):
        """What the log has of it."""
        done = self.run_program(os.environ["OCF_DIRECT"], str(path), *more,
                                CUFILE_LOGFILE_PATH=self.log,
                                CUFILE_LOGGING_LEVEL="INFO")
        if done.returncode == 77:
            self.skipTest("no O_DIRECT there")
        said = f"{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("done\n", done.stdout, said)
        return self.log.read_text()

    def try_as_root(self, *command):
        """What it says; the test is skipped if it may not be done."""
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            self.skipTest(f"{command[0]}: {done.stderr.strip()}")
        return done.stdout.strip()

    def test_rings_carry_them_where_the_kernel_has_rings(self):
        log = self.run_direct(self.dir / "data")
        if "io_uring: carries large direct requests" not in log:
            self.skipTest("this machine refuses io_uring")
        self.assertEqual(log.count("io_uring: "), 1, log)

    def test_a_refusal_is_told_once_and_is_no_error(self):
        for err, words in (1, "Operation not permitted"), (
                38, "Function not implemented"):
            self.log.unlink(missing_ok=True)
            log = self.run_direct(self.dir / "data", str(err))
            self.assertEqual(log.count("io_uring: "), 1, log)
            self.assertIn(f"io_uring: {words}; threads carry", log)
            self.assertNotIn("ERROR", log)

    def test_want_of_locked_memory_is_no_error(self):
        self.assertNotIn("ERROR", self.run_direct(self.dir / "data", "12"))

    def test_a_file_in_memory(self):
        shm = tempfile.mkdtemp(prefix="opencufile-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, shm)
        self.run_direct(pathlib.Path(shm) / "data")

    def test_a_file_on_an_overlay(self):
        names = [self.dir / name for name in ("low", "up", "work", "over")]
        for name in names:
            name.mkdir()
        low, upper, work, over = names
        self.try_as_root("mount", "-t", "overlay", "overlay", "-o",
                         f"lowerdir={low},upperdir={upper},workdir={work}",
                         str(over))
        self.addCleanup(subprocess.run, ["umount", str(over)], check=True)
        self.run_direct(over / "data")

    def test_a_block_device(self):
        image = self.dir / "image"
        with open(image, "wb") as file:
            file.truncate(16 << 20)
        device = self.try_as_root("losetup", "-f", "--show", str(image))
        self.addCleanup(subprocess.run, ["losetup", "-d", device], check=True)
        self.run_direct(device)


class Log(Case):
    """Contract 4.4; style 26."""

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def test_no_file_is_made_unless_one_is_asked_for(self):
        self.run_client("log_lines")
        self.assertEqual(list(self.dir.iterdir()), [self.json])

    def test_no_file_is_made_while_nothing_is_logged(self):
        self.run_client("host", CUFILE_LOGFILE_PATH=self.log)
        self.assertFalse(self.log.exists())

    def test_every_line_has_the_documented_form(self):
        self.run_client("log_lines", CUFILE_LOGFILE_PATH=self.log,
                        CUFILE_LOGGING_LEVEL="TRACE")
        self.assertGreater(len(self.lines()), 3)
        for line in self.lines():
            self.assertRegex(line, LINE)

    def test_a_level_shows_itself_and_what_is_more_important(self):
        seen = set()
        for rank, level in enumerate(LEVELS):
            self.log.unlink(missing_ok=True)
            self.run_client("log_lines", CUFILE_LOGFILE_PATH=self.log,
                            CUFILE_LOGGING_LEVEL=level)
            got = {LINE.match(line)[1] for line in self.lines()}
            self.assertTrue(got <= set(LEVELS[:rank + 1]), (level, got))
            seen |= got
        self.assertIn("ERROR", seen)
        self.assertIn("INFO", seen)

    def test_an_error_names_operation_object_numbers_and_decision(self):
        self.run_client("log_lines", CUFILE_LOGFILE_PATH=self.log)
        text = "\n".join(self.lines())
        self.assertRegex(text, r"read handle .* len 1 off -1: negative file")
        self.assertRegex(text, r"read handle .*: no such handle")

    def test_lines_that_scripts_look_for_have_their_words(self):
        """Contract 4.4."""
        self.run_client("exit_without_close", fake=True, CUFILE_LOGFILE_PATH=self.log,
                        CUFILE_LOGGING_LEVEL="TRACE")
        lines = [LINE.match(line) and (LINE.match(line)[1], line)
                 for line in self.lines()]
        notices = [line for level, line in lines if level == "NOTICE"]
        self.assertEqual(len(notices), 1, self.lines())
        self.assertIn("running in compatible mode: ", notices[0])
        traces = [line for level, line in lines if level == "TRACE"]
        self.assertTrue(traces)
        for line in traces:
            self.assertRegex(line, r" cufile IO mode: POSIX \((read|write) handle ")

    def test_a_log_of_errors_says_that_gpu_memory_is_copied(self):
        self.run_client("exit_without_close", fake=True,
                        CUFILE_LOGFILE_PATH=self.log)
        self.assertEqual([LINE.match(line)[1] for line in self.lines()],
                         ["NOTICE"])

    def test_a_file_that_is_refused_is_told_with_its_code(self):
        script = ("import ctypes, os\n"
                  f"lib = ctypes.CDLL({LIB!r})\n"
                  "descr = (ctypes.c_int * 6)(1, 0, 999)\n"
                  "fh = ctypes.c_void_p()\n"
                  "lib.cuFileHandleRegister(ctypes.byref(fh), descr)\n")
        if SANITIZED:
            self.skipTest("the interpreter is not instrumented")
        done = self.run_program(sys.executable, "-c", script,
                                CUFILE_LOGFILE_PATH=self.log)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex("\n".join(self.lines()),
                         r" ERROR +handle:\d+ cuFileHandleRegister error: \w+")

    def test_statistics_stand_at_the_end_at_level_info(self):
        self.json.write_text('{"profile": {"cufile_stats": 1}}')
        for level, there in (("INFO", True), ("WARN", False)):
            self.log.unlink(missing_ok=True)
            self.run_client("log_lines", CUFILE_LOGFILE_PATH=self.log,
                            CUFILE_LOGGING_LEVEL=level)
            text = "\n".join(self.lines())
            self.assertEqual(" stats: read" in text, there, text)

    def test_the_file_and_directory_may_come_from_the_json(self):
        self.json.write_text('{"logging": {"dir": "%s", "level": "INFO"}}'
                             % self.dir)
        self.run_client("log_lines")
        self.assertIn("driver open",
                      (self.dir / "cufile.log").read_text())

    def test_a_broken_json_is_told_with_file_line_and_column(self):
        self.json.write_text('{\n "properties": {\n  "io_batchsize" 128\n}}')
        self.run_client("host", CUFILE_LOGFILE_PATH=self.log)
        broken = [line for line in self.lines() if str(self.json) in line]
        self.assertEqual(len(broken), 1, self.lines())
        self.assertIn(f"{self.json}:3:18: ", broken[0])

    def test_a_missing_json_is_told_once(self):
        self.json.unlink()
        self.run_client("host", CUFILE_LOGFILE_PATH=self.log)
        self.assertEqual(len(self.lines()), 1, self.lines())
        self.assertIn(str(self.json), self.lines()[0])

    def test_the_log_of_a_child_goes_on_in_the_same_file(self):
        self.run_client("fork_host", CUFILE_LOGFILE_PATH=self.log,
                        CUFILE_LOGGING_LEVEL="INFO")
        pids = {re.search(r"pid=(\d+)", line)[1] for line in self.lines()}
        self.assertEqual(len(pids), 2, self.lines())


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    passed = result.testsRun - failed - len(result.skipped)
    print(f"[  PASSED  ] {passed} test(s).")
    if failed:
        print(f"[  FAILED  ] {failed} test(s).")
    if result.skipped:
        print(f"[  SKIPPED ] {len(result.skipped)} test(s).")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
