#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# test_gdscp.sh GDSCP FAKE - runs the tool as a person would: through host
# memory, and through the memory of the fake driver in the folder FAKE.
# The cases are called by name, which shellcheck cannot see:
# shellcheck disable=SC2317
set -uo pipefail
gdscp=$1
fake=$2
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/test_gdscp.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export TMPDIR=$dir
unset CUFILE_LOGFILE_PATH CUFILE_LOGGING_LEVEL
export FAKECUDA_STRICT=1
failed=0

on_gpu() { LD_LIBRARY_PATH=$fake "$gdscp" "$@" >"$dir/out" 2>"$dir/err"; }
on_host() { "$gdscp" --host "$@" >"$dir/out" 2>"$dir/err"; }
says() { grep -q -h -e "$1" "$dir/out" "$dir/err"; }
status_is() { # STATUS COMMAND...
	local want=$1 got=0
	shift
	"$@" || got=$?
	[ "$got" = "$want" ]
}

a_copy_through_gpu_memory_is_equal() {
	on_gpu -s 100003 "$dir/odd" "$dir/copy" &&
		cmp "$dir/odd" "$dir/copy" && says 'memory *GPU 0' &&
		says 'read device memory.*path staged' && says 'not host: '
}
a_copy_through_host_memory_is_equal() {
	on_host -s 1M "$dir/odd" "$dir/copy" && cmp "$dir/odd" "$dir/copy" &&
		says 'memory *host' && says 'write host memory.*path host'
}
an_empty_file_is_copied() {
	: >"$dir/empty"
	on_host "$dir/empty" "$dir/copy" && [ -f "$dir/copy" ] &&
		[ ! -s "$dir/copy" ] && says 'bytes *0'
}
a_longer_destination_is_emptied_first() {
	cat "$dir/odd" "$dir/odd" >"$dir/copy"
	on_host "$dir/odd" "$dir/copy" && cmp "$dir/odd" "$dir/copy"
}
a_sparse_file_is_copied() {
	truncate -s 3M "$dir/sparse"
	printf x >>"$dir/sparse"
	on_gpu -s 1M "$dir/sparse" "$dir/copy" &&
		cmp "$dir/sparse" "$dir/copy"
}
a_file_without_a_size_is_copied() {
	on_host /proc/version "$dir/copy" && cmp /proc/version "$dir/copy"
}
without_a_gpu_host_memory_is_used_with_a_note() {
	FAKECUDA_GPUS=0 on_gpu "$dir/odd" "$dir/copy" &&
		cmp "$dir/odd" "$dir/copy" && says 'no GPU to be had' &&
		says 'memory *host'
}
a_gpu_that_is_not_there_is_an_error() {
	status_is 1 on_gpu -d 7 "$dir/odd" "$dir/copy" && says 'GPU 7'
}
one_file_under_two_names_is_refused() {
	ln "$dir/odd" "$dir/other"
	status_is 1 on_host "$dir/odd" "$dir/other" && says 'same file' &&
		[ -s "$dir/odd" ]
}
a_directory_is_refused() {
	status_is 1 on_host "$dir" "$dir/copy" && says 'regular file'
}
a_missing_source_is_named() {
	status_is 1 on_host "$dir/nothing" "$dir/copy" && says "$dir/nothing"
}
a_failing_copy_names_file_offset_and_reason() {
	FAKECUDA_PLAN='cuMemcpyHtoDAsync_v2:2=2' \
		status_is 1 on_gpu -s 64K "$dir/odd" "$dir/copy" &&
		says "cuFileRead $dir/odd at offset 65536" &&
		says CU_FILE_CUDA_DRIVER_ERROR && says CUDA_ERROR_OUT_OF_MEMORY
}
bytes_that_did_not_arrive_are_noticed() {
	OCF_PATH=null status_is 1 on_host "$dir/odd" "$dir/copy"
}
a_result_that_cannot_be_written_is_an_error() {
	full() { "$gdscp" "$@" >/dev/full 2>"$dir/err"; }
	status_is 1 full --host "$dir/odd" "$dir/copy" &&
		says 'write the result: ' && status_is 1 full --help
}
nothing_is_printed_into_the_copy() {
	# whose descriptor would be that of standard error; it fails at the sum
	OCF_PATH=null status_is 1 "$gdscp" --host "$dir/odd" "$dir/new" \
		<&- 2>&- >"$dir/out"
	! grep -q gdscp "$dir/new"
}
a_log_that_the_user_configured_stays_the_users() {
	CUFILE_LOGFILE_PATH=$dir/log CUFILE_LOGGING_LEVEL=INFO \
		on_host "$dir/odd" "$dir/copy" && says 'that you have conf' &&
		grep -q 'route: ' "$dir/log"
}
the_private_log_is_removed() {
	! compgen -G "$dir/gdscp.*" >/dev/null
}
# begin_endless : byte after byte in the background, where a script's INT is
# ignored; $pid copies when it returns
begin_endless() {
	truncate -s 1G "$dir/endless"
	rm -f "$dir/copy"
	# HUP may be ignored, too: by nohup
	env --default-signal=HUP "$gdscp" --host -s 1 "$dir/endless" "$dir/copy" \
		>"$dir/out" 2>"$dir/err" &
	pid=$!
	until [ -s "$dir/copy" ]; do kill -0 "$pid" || return; done
}
the_private_log_goes_with_the_terminal_too() {
	begin_endless && kill -HUP "$pid" && status_is 129 wait "$pid" &&
		the_private_log_is_removed
}
a_signal_that_is_ignored_stays_so() {
	local ignored
	begin_endless
	ignored=$(sed -n 's/^SigIgn:\t//p' "/proc/$pid/status")
	kill -HUP "$pid"
	wait "$pid"
	[ $((0x$ignored >> 1 & 1)) = 1 ]
}
wrong_options_are_usage_errors() {
	status_is 2 on_host && status_is 2 on_host -s 0 a b &&
		status_is 2 on_host -s 5x a b && status_is 2 on_host -d 0 a b &&
		status_is 2 on_host --no-such a b && status_is 0 on_host --help
}

head -c 2500001 /dev/urandom >"$dir/odd"
for name in a_copy_through_gpu_memory_is_equal \
	a_copy_through_host_memory_is_equal \
	an_empty_file_is_copied \
	a_longer_destination_is_emptied_first \
	a_sparse_file_is_copied \
	a_file_without_a_size_is_copied \
	without_a_gpu_host_memory_is_used_with_a_note \
	a_gpu_that_is_not_there_is_an_error \
	one_file_under_two_names_is_refused \
	a_directory_is_refused \
	a_missing_source_is_named \
	a_failing_copy_names_file_offset_and_reason \
	bytes_that_did_not_arrive_are_noticed \
	a_result_that_cannot_be_written_is_an_error \
	nothing_is_printed_into_the_copy \
	a_log_that_the_user_configured_stays_the_users \
	the_private_log_is_removed \
	the_private_log_goes_with_the_terminal_too \
	a_signal_that_is_ignored_stays_so \
	wrong_options_are_usage_errors; do
	if "$name"; then
		echo "ok $name"
	else
		echo "FAILED $name"
		cat "$dir/out" "$dir/err"
		failed=1
	fi
done
exit $failed
