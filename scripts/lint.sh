#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh - everything a machine can see that a reader should not have to.
# Runs all checks, names those that failed, and fails if any did.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

failed=()
check() {
	local name=$1
	shift
	if "$@"; then
		echo "ok      $name"
	else
		echo "FAILED  $name"
		failed+=("$name")
	fi
}

mapfile -t c_files < <(scripts/c_files.sh)
# Headers are seen where they are included; some mean nothing alone.
mapfile -t sources < <(scripts/c_files.sh | grep '\.c$')
mapfile -t shell_files < <(find dev .ci/run scripts tests tools bench examples \
	-name build -prune -o -type f \
	\( -name '*.sh' -o -name '*.prerm' -o -path dev -o -path .ci/run \
	-o -path tools/ocf-run \) -print | sort)

run_clang_format() {
	local file status=0
	for file in "${c_files[@]}"; do
		clang-format "$file" | cmp -s - "$file" && continue
		echo "$file: not formatted, ./dev fmt does it"
		status=1
	done
	return "$status"
}

run_cppcheck() {
	cppcheck --quiet -j "$(nproc)" --std=c11 --error-exitcode=1 --inline-suppr \
		--enable=warning,performance,portability \
		-D__LP64__ -DCUFILE_NO_CUDA_H -D_GNU_SOURCE -Iinclude -Isrc \
		"${sources[@]}"
}

has_rdma_core() {
	echo '#include <infiniband/mlx5dv.h>' | clang -fsyntax-only -xc - 2>/dev/null
}

# The tests are built by gcc; who has clang builds with that. One compares our
# declarations with headers that need not be there.
run_clang() {
	local file
	for file in "${sources[@]}"; do
		[ "$file" = tests/abi/test_verbs_abi.c ] && ! has_rdma_core ||
			printf '%s\0' "$file"
	done |
		xargs -0 -n 20 -P "$(nproc)" clang -fsyntax-only -std=gnu11 \
			-Werror -Wall -Wextra -Wno-unused-parameter \
			-Wmissing-prototypes -Wstrict-prototypes -Wshadow \
			-Wpointer-arith -D_GNU_SOURCE -DCUFILE_NO_CUDA_H \
			-DOCF_VERSION='""' -Iinclude -Isrc -Itools -Ibench \
			-Itests{,/behaviour,/fakecuda,/fault}
}

run_codespell() {
	codespell --quiet-level=3 --ignore-words=scripts/codespell-ignore.txt \
		--skip='./build*,./.git,./LICENSE,*.pyc' .
}

run_mypy() {
	(cd python && mypy --no-error-summary --cache-dir=/dev/null)
}

check "floors: includes point downward" python3 scripts/check_floors.py
check "source: licences, lengths, known mistakes" python3 scripts/check_source.py
check "symbols: header, export list, contract, status page" \
	python3 scripts/check_symbols.py
check "cuda_abi: every constant is compared with cuda.h" \
	python3 scripts/check_cuda_abi.py
check "reference: docs/reference is what the headers say" \
	python3 scripts/reference.py --check
check "headers: compile alone in C and C++" tests/abi/headers.sh include
check "clang-format" run_clang_format
check "clang: every source compiles, without a warning" run_clang
check "cppcheck" run_cppcheck
check "shellcheck" shellcheck -x "${shell_files[@]}"
check "codespell" run_codespell
check "mypy" run_mypy

if [ "${#failed[@]}" -gt 0 ]; then
	echo "lint: ${#failed[@]} failed"
	exit 1
fi
echo "lint: clean"
