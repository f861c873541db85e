#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# clients.sh BUILD [--beside LIB] [NAME...] - runs programs of others on this
# library, and with --beside on another libcufile too, at the same time, which
# ends with a table of both and says where this one does worse, if anywhere.
#
#   OCF_CLIENTS  a folder beside the project with what was fetched: fio (a
#                built fio with the engine libcufile, and in lib/ whatever
#                it needs), cuda-python, cufile-python and kvikio (their
#                tests; KvikIO's are the files of its python/kvikio/tests),
#                samples (NVIDIA's, built: cufile_sample_001 and so on, and in
#                lib/ a libcudart.so.13 where the driver is the fake one)
#   PYTHON       the interpreter that has kvikio, cuda-bindings, torch
#   OCF_CLIENTS_PATIENCE  seconds until one program counts as hung (300)
#   OCF_CLIENTS_TIME      seconds after which no program is started (3600)
#   OCF_CLIENTS_TAIL      lines to show of what a failed one said (20)
#   OCF_CLIENTS_LIB       another libcufile to run instead of this one
#   OCF_CLIENTS_VERDICTS  a file that gets a line for each test
#
# What is not there is skipped. On a machine without libcuda.so.1 the fake
# driver takes its place. Each run must leave lines of requests in our log,
# with the bytes proven by the client itself; a client that fell back to
# something else would leave none; of another library no log is asked.
# docs/clients.md has the results.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=$(realpath "${1:?usage: clients.sh BUILD [--beside LIB] [NAME...]}")
shift
beside=
if [ "${1:-}" = --beside ]; then
	beside=$(realpath -e "${2:?--beside wants a library}") || exit
	shift 2
fi
[ $# -gt 0 ] || set -- samples fio kvikio kvikio-tests \
	cuda-python cufile-python torch
clients=${OCF_CLIENTS:-../clients}
clients=$(realpath -m "$clients")
python=${PYTHON:-python3}

work=$(mktemp -d "${TMPDIR:-/var/tmp}/opencufile-clients.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Both at once: each is a run of this script with its own folder.
if [ -n "$beside" ]; then
	one() { OCF_CLIENTS_VERDICTS=$work/$1 scripts/clients.sh "$build" "${@:2}"; }
	one ours "$@" >"$work/ours.said" 2>&1 &
	OCF_CLIENTS_LIB=$beside one theirs "$@" >"$work/theirs.said" 2>&1 &
	wait
	echo "== this library"
	cat "$work/ours.said"
	echo "== $beside"
	cat "$work/theirs.said"
	echo "== side by side"
	awk -f scripts/clients.awk "$work/ours" "$work/theirs"
	exit
fi

lib=${OCF_CLIENTS_LIB:-$build/src/libcufile.so.0}
verdicts=${OCF_CLIENTS_VERDICTS:-$work/verdicts}
patience=${OCF_CLIENTS_PATIENCE:-300} time=${OCF_CLIENTS_TIME:-3600}
: >"$verdicts"
ln -s "$lib" "$work/libcufile.so"
path=$work
# Not "grep -q" in a pipe: it may end before ldconfig has said all it has.
gpu=$(ldconfig -p | grep -F libcuda.so.1)
[ -n "$gpu" ] || path=$path:$build/tests/fakecuda
path=$path:$clients/fio/lib:$clients/samples/lib
export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export CUFILE_LOGFILE_PATH=$work/log CUFILE_LOGGING_LEVEL=TRACE
export CUFILE_LOGFILE_MAX_SIZE_MB=64 OCF_LIB=$lib
config=$PWD/share/cufile.json
if [ -n "${OCF_CLIENTS_LIB:-}" ]; then # JSON as the strictest parser has it
	config=$work/cufile.json
	echo '{ "properties": { "allow_compat_mode": true } }' >"$config"
	export CUFILE_ENV_PATH_JSON=$config CUFILE_LOGGING_LEVEL=ERROR
fi

passed=0 failed=0

# verdict CLIENT TEST pass|fail|hang
verdict() { printf '%s\t%s\t%s\n' "$@" >>"$verdicts"; }

# fail NAME WHY [hang]
fail() {
	echo "FAILED  $1: $2"
	tail -"${OCF_CLIENTS_TAIL:-20}" "$work/said"
	failed=$((failed + 1))
	verdict "${1%% *}" "$1" "${3:-fail}"
}

# What the log and the program must say, and what it must not, if not empty.
proof='cufile IO mode' says='' complains=''

# ours NAME COMMAND... : it must succeed, and our log must have its requests
ours() {
	local name=$1 requests status left=$((time - SECONDS))
	shift
	rm -f "$work/log"
	[ "$left" -gt 0 ] || { skip "$name" "no time left"; return; }
	[ "$left" -lt "$patience" ] || left=$patience
	(cd "$work" && LD_PRELOAD=$lib timeout -k 5 "$left" "$@") >"$work/said" 2>&1
	status=$?
	case $status in
	0) ;;
	124 | 137) fail "$name" "did not end within $left seconds" hang; return ;;
	*) fail "$name" "ended with $status"; return ;;
	esac
	if [ -z "${OCF_CLIENTS_LIB:-}" ] && [ -n "$proof" ] && ! grep -qs "$proof" "$work/log"; then
		fail "$name" "it went well, but not through this library"
		return
	fi
	if [ -n "$says" ] && ! grep -qE "$says" "$work/said"; then
		fail "$name" "it did not say \"$says\""
		return
	fi
	if [ -n "$complains" ] && grep -qiE "$complains" "$work/said"; then
		fail "$name" "it complains"
		return
	fi
	verdict "${name%% *}" "$name" pass
	requests=$(grep -cs 'cufile IO mode' "$work/log")
	passed=$((passed + 1))
	echo "ok      $name: ${requests:-0} requests; $(grep -E '[0-9]+ passed|^version' "$work/said" | tail -1)"
}

skip() { echo "skip    $1: $2"; }
have_module() { "$python" -c "import $1" 2>/dev/null; }

# suite NAME PROCESSES ARGUMENT... : pytest, with a verdict for every test. For a
# comparison each test has its own time, and a process that it may take along.
suite() {
	local name=$1 apart=()
	if [ -n "${OCF_CLIENTS_VERDICTS:-}" ] && have_module xdist && have_module pytest_timeout; then
		apart=(-n "$2" --timeout=20 --timeout-method=thread)
	fi
	shift 2
	PYTHONPATH=$PWD/tests/gpu${PYTHONPATH:+:$PYTHONPATH} VERDICTS_OF=$name \
		VERDICTS=$verdicts ours "$name" "$python" -B -m pytest -q \
		-p no:cacheprovider -p verdicts "${apart[@]}" "$@"
}

# sample NUMBER WORDS ARGUMENT... : these are its last words
sample() {
	local program=$clients/samples/cufile_sample_$1 says=$2 name="sample $1${mode:+ $mode}"
	# many end well after an error
	local complains='error|fail|mismatch' proof='driver open:'
	shift 2
	[ -x "$program" ] || { skip "$name" "not built"; return; }
	ours "$name" "$program" "$@"
}

# written FILE SIZE : bytes of 0xab, so many
written() {
	[ -e "$work/$1" ] || return # its sample has failed already
	head -c "$2" /dev/zero | tr '\0' '\253' | cmp -s - "$work/$1" && return
	: >"$work/said"
	fail "sample 0${1#w}" "the file has other bytes than it wrote"
}

run_samples() {
	local i mode=
	[ -d "$clients/samples" ] || { skip samples "no $clients/samples"; return; }
	for i in big:34M m1:1M m2:2M m2b:2M b110:110M s1k:1000; do
		head -c "${i#*:}" /dev/urandom >"$work/${i%:*}"
	done
	sample 001 'written bytes :131072' w01 0 && written w01 131072
	sample 002 'written bytes :1048576' w02 0 && written w02 1048576
	for i in 003 004 005 006 014 031 032 033 034; do
		sample $i 'SHA SUM Match' big o$i 0
	done
	for mode in 1 2 3; do
		sample 015 'SHA SUM Match' big o15 0 $mode
	done
	mode=
	sample 007 ''
	# it calls nothing: the words for errors are the header's
	if [ -x "$clients/samples/cufile_sample_008" ]; then
		proof='' says='unsupported file type' \
			ours "sample 008" "$clients/samples/cufile_sample_008"
	fi
	sample 009 'Read Success' m2 m2b
	for i in 012 013; do # requests by the million, and a line each
		CUFILE_LOGGING_LEVEL=INFO sample $i 'Read Success' m2 m2b
	done
	sample 010 'Read Success' m2 0 0
	sample 011 'Read Success' b110 0 0
	sample 016 'Read Success' b110
	sample 017 'Read Success' b110
	sample 018 'Write success ret = 200' s1k
	sample 020 'done got .* for 8 events' m1 0 8
	sample 021 'Batch IO Canceled' m1 0 8
	sample 022 'deregistering device memory' m1 0
	sample 028 'written bytes :131072' w28 0 && written w28 131072
}

run_fio() {
	[ -x "$clients/fio/fio" ] || { skip fio "no $clients/fio/fio"; return; }
	for rw in write randwrite; do
		ours "fio $rw" "$clients/fio/fio" --name=x --ioengine=libcufile \
			--filename="$work/fio.data" --size=32m --bs=256k --rw=$rw \
			--verify=crc32c --do_verify=1 --direct=1 --thread \
			--numjobs=1 --gpu_dev_ids=0 --cuda_io=cufile
	done
}

run_kvikio() {
	have_module kvikio || { skip kvikio "not installed"; return; }
	KVIKIO_COMPAT_MODE=OFF ours kvikio "$python" \
		"$PWD/tests/gpu/kvikio_memory.py" "$work/kvikio.data"
}

# KvikIO's own tests, with CuPy on a GPU and a stand-in for it without. The
# stand-in has not CuPy's file functions, which no cuFile is behind.
run_kvikio-tests() {
	local tests=$clients/kvikio stand_in='' filter='test_'
	[ -f "$tests/test_basic_io.py" ] || { skip kvikio-tests "no $tests"; return; }
	have_module kvikio || { skip kvikio-tests "no kvikio"; return; }
	if [ -z "$gpu" ]; then
		stand_in=$PWD/tests/client filter='not test_numpy or not cupy'
	fi
	cp -r "$tests" "$work/kvikio-tests"
	PYTHONPATH=$stand_in${PYTHONPATH:+:$PYTHONPATH} FAKECUDA_GPUS=2 \
		KVIKIO_COMPAT_MODE=OFF CUFILE_ENV_PATH_JSON=$config TMPDIR=$work \
		suite kvikio-tests 4 -W ignore -k "$filter" \
		kvikio-tests/test_{basic_io,async_io,mmap,numpy}.py \
		kvikio-tests/test_{defaults,cufile_driver,utils,version}.py
}

# Of the tests of 2025-09 three are left out: one sets NVTX, which the same
# test of a later version leaves out too, and two call later bindings with the
# arguments of earlier ones.
run_cuda-python() {
	local file=$clients/cuda-python/test_cufile.py
	[ -f "$file" ] || { skip cuda-python "no $file"; return; }
	cp "$clients"/cuda-python/* "$work/"
	sed -i 's/^def isSupportedFilesystem():/&\n    return True/' "$work/test_cufile.py"
	suite cuda-python 1 \
		--deselect test_cufile.py::test_set_get_parameter_bool \
		--deselect test_cufile.py::test_get_bar_size_in_kb \
		--deselect test_cufile.py::test_set_parameter_posix_pool_slab_array \
		test_cufile.py
}

run_cufile-python() {
	local file=$clients/cufile-python/test_cufile.py
	[ -f "$file" ] || { skip cufile-python "no $file"; return; }
	TEST_CUFILE_BUF_SIZE=4 TEST_CUFILE_WORK_DIR=$work \
		suite cufile-python 1 "$file"
}

run_torch() {
	if [ -z "$gpu" ] || ! have_module torch; then
		skip torch "no PyTorch, or no GPU"
		return
	fi
	ours torch "$python" "$PWD/tests/gpu/client_torch.py" "$work"
}

for name in "$@"; do
	"run_$name"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
