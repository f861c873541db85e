// SPDX-License-Identifier: Apache-2.0
/*
 * probe - places where bpftrace, perf and SystemTap may look in (USDT).
 *
 * Built in if <sys/sdt.h> is there (package systemtap-sdt-dev): a probe is one
 * nop and a note of where its arguments are, until a tracer puts a trap there.
 * Without the header it is nothing. Arguments are values at hand; none is
 * computed for a probe. The provider is opencufile, a name's __ is a - to some
 * tracers, and a text is a pointer to a string of the process. docs/bpftrace
 * has scripts, which change with the probes (tests/abi).
 */
#ifndef CF_CORE_PROBE_H
#define CF_CORE_PROBE_H

#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define CF_HAVE_PROBES 1
#endif
#endif

#ifdef CF_HAVE_PROBES
#define CF_PROBE2(name, a, b) DTRACE_PROBE2(opencufile, name, a, b)
#define CF_PROBE4(name, a, b, c, d) DTRACE_PROBE4(opencufile, name, a, b, c, d)
#else
#define CF_PROBE2(name, a, b) ((void)(a), (void)(b))
#define CF_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

/* Once for each request, on its thread: read or write, the path or "none". */
#define cf_probe_route(op, path, size, off) \
	CF_PROBE4(route, op, path, size, off)

/* A piece begins on the thread that leads it, and ends there. */
#define cf_probe_piece_begin(path, op, size, off) \
	CF_PROBE4(piece__begin, path, op, size, off)
#define cf_probe_piece_end(path, result) CF_PROBE2(piece__end, path, result)

/* A thread moves bytes of a file; is_write is 0 or 1. */
#define cf_probe_file_begin(handle, is_write, size, off) \
	CF_PROBE4(file__begin, handle, is_write, size, off)
#define cf_probe_file_end(handle, result) CF_PROBE2(file__end, handle, result)

/* A carrier waits because no slot of its pool is free, and has one again. */
#define cf_probe_slot_wait(pool, slot_size) \
	CF_PROBE2(slot__wait, pool, slot_size)
#define cf_probe_slot_ready(pool, slot_size) \
	CF_PROBE2(slot__ready, pool, slot_size)

/* A bundle of nr small entries of a batch, carried together. */
#define cf_probe_bundle_begin(batch, nr) CF_PROBE2(bundle__begin, batch, nr)
#define cf_probe_bundle_end(batch, nr) CF_PROBE2(bundle__end, batch, nr)

#endif
