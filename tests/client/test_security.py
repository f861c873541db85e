# SPDX-License-Identifier: Apache-2.0
"""What others may learn from us, and do to us: docs/trust.md, Threats."""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import unittest

from test_process import SANITIZED, Case, main

SECRET = "a secret of the file that nobody may tell"
NOBODY = 65534


class Leaks(Case):
    """A log at the finest level of a run that does everything, also wrong."""

    def traces(self):
        done = self.run_program(os.environ["OCF_LIFE"], "leave_traces",
                                str(self.dir), fake=True,
                                CUFILE_LOGFILE_PATH=self.log,
                                CUFILE_LOGGING_LEVEL="TRACE",
                                CUFILE_EXPLAIN="1")
        said = f"{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, 0, said)
        told = [line for line in done.stderr.splitlines()
                if not line.startswith("fakecuda: ")]
        return done.stdout, "\n".join([self.log.read_text(), *told])

    def test_no_address_is_told(self):
        stdout, log = self.traces()
        self.assertGreater(log.count(" ERROR "), 8, log)
        self.assertRegex(log, r"#[0-9a-f]{8}:[0-9a-f]{3}")
        spans = [(int(a, 16), int(b, 16)) for a, b in
                 re.findall(r"^map ([0-9a-f]+)-([0-9a-f]+) ", stdout, re.M)]
        # a sanitizer's shadow, in which any number lies
        spans = [span for span in spans if span[1] - span[0] < 1 << 40]
        inside = [int(text, 16) for text in
                  re.findall(r"0x([0-9a-f]+)", "\n".join(
                      re.findall(r"^(?:mem|gpu) .*$", stdout, re.M)))]
        self.assertEqual(len(inside), 3, stdout)
        for at in inside[:2]:  # the check itself would find one
            self.assertTrue(any(a <= at < b for a, b in spans))
        told = {int(text, 16) for text in
                re.findall(r"\b(?:0x)?([0-9a-f]{9,16})\b", log)}
        told |= {int(text) for text in re.findall(r"\b\d{11,20}\b", log)}
        for value in told:
            near = [span for span in spans if span[0] <= value < span[1]]
            self.assertFalse(near, f"{value:#x} is in the log\n{log}")
            self.assertFalse([at for at in inside if at >> 16 == value >> 16])

    def test_no_data_is_told(self):
        _, log = self.traces()
        for text in (SECRET, SECRET[5:13], SECRET.encode().hex()[:16],
                     SECRET[:8][::-1].encode().hex()):
            self.assertNotIn(text, log)

    def test_another_session_s_handle_is_refused(self):
        _, log = self.traces()  # leave_traces checks the answers
        self.assertIn("no such handle", log)


@unittest.skipIf(SANITIZED, "a sanitizer writes where it likes")
class Privilege(Case):
    """A program with more rights than its caller does not obey the caller."""

    def run_as_nobody(self, program):
        done = subprocess.run(
            [program, "log_lines", str(self.dir)], user=NOBODY, group=NOBODY,
            extra_groups=[], cwd=self.dir, capture_output=True, text=True,
            env=self.environment(CUFILE_LOGFILE_PATH=self.log,
                                 CUFILE_LOGGING_LEVEL="TRACE"),
            timeout=300, check=False)
        said = f"{done.stdout}\n{done.stderr}"
        self.assertEqual(done.returncode, 0, said)

    def test_a_setuid_program_takes_no_log_and_no_file_from_its_caller(self):
        if os.geteuid():
            self.skipTest("only root can make such a program")
        if os.statvfs(self.dir).f_flag & os.ST_NOSUID:
            self.skipTest("no such programs on this file system")
        os.chmod(self.dir, 0o777)
        program = pathlib.Path(shutil.copy(os.environ["OCF_CLIENT_ALONE"], self.dir))
        program.chmod(0o755)
        try:
            self.run_as_nobody(program)
        except PermissionError:
            self.skipTest("the directory is where nobody else may read")
        self.assertTrue(self.log.exists())  # an ordinary program does
        self.log.unlink()
        program.chmod(0o4755)
        self.json.write_text('{"logging": {"dir": "%s", "level": "TRACE"}}'
                             % self.dir)
        self.run_as_nobody(program)
        self.assertFalse(self.log.exists())
        self.assertFalse((self.dir / "cufile.log").exists())


class Files(Case):
    """The files we make and read."""

    def test_the_log_is_written_by_its_owner_alone(self):
        old = os.umask(0)
        try:
            self.run_client("log_lines", CUFILE_LOGFILE_PATH=self.log)
        finally:
            os.umask(old)
        self.assertEqual(stat.S_IMODE(self.log.stat().st_mode), 0o644)

    def test_a_stricter_umask_is_obeyed(self):
        old = os.umask(0o077)
        try:
            self.run_client("log_lines", CUFILE_LOGFILE_PATH=self.log)
        finally:
            os.umask(old)
        self.assertEqual(stat.S_IMODE(self.log.stat().st_mode), 0o600)

    def test_a_configuration_that_changes_while_it_is_read_is_no_danger(self):
        """Another process replaces, cuts and fills it all the time."""
        writer = subprocess.Popen(
            [sys.executable, "-c",
             "import os, sys\n"
             "p = sys.argv[1]\n"
             "while True:\n"
             "    for t in ('{', '{}', '{\"properties\":{}}', 'x' * 70000, ''):\n"
             "        open(p, 'w').write(t)\n"
             "    os.replace(p, p + '2'); os.symlink(p + '2', p + '3')\n"
             "    os.replace(p + '3', p)\n"
             "    os.unlink(p)\n", str(self.json)])
        try:
            for _ in range(25):
                self.run_client("host")
            self.assertIsNone(writer.poll(), "nobody wrote any more")
        finally:
            writer.kill()
            writer.wait()


if __name__ == "__main__":
    sys.exit(main())
