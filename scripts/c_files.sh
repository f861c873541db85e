#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Names every C file of the project, one a line; build folders are not ours.
set -euo pipefail
cd "$(dirname "$0")/.."
for dir in include src tools tests bench examples; do
	[ -d "$dir" ] || continue
	find "$dir" -name '*.[ch]' -type f
done | sort
