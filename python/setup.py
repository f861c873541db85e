# SPDX-License-Identifier: Apache-2.0
"""Puts the library that OPENCUFILE_BUNDLE names into the wheel, if it is set:
a file, or a folder with the library and all that it needs. OPENCUFILE_RUN
names ocf-run, which then is a command of the wheel.

Such a wheel is for one platform, which OPENCUFILE_PLATFORM may name, and still
for every Python.
"""
import os
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

BUNDLE = os.environ.get("OPENCUFILE_BUNDLE")
RUN = os.environ.get("OPENCUFILE_RUN")


class BuildPy(build_py):
    def run(self):
        folder = os.path.join(self.build_lib, "cufile")
        # pip builds in the tree, where an earlier wheel has left its library
        shutil.rmtree(folder, ignore_errors=True)
        super().run()
        if BUNDLE:
            if os.path.isdir(BUNDLE):
                shutil.copytree(BUNDLE, folder, dirs_exist_ok=True)
            else:
                shutil.copy(BUNDLE, os.path.join(folder, "libcufile.so.0"))


class BdistWheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = not BUNDLE

    def get_tag(self):
        _, _, platform = super().get_tag()
        platform = os.environ.get("OPENCUFILE_PLATFORM", platform)
        return "py3", "none", platform if BUNDLE else "any"


setup(scripts=[RUN] if RUN else [],
      cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel})
