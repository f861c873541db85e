// SPDX-License-Identifier: Apache-2.0
/*
 * unseen - copies of which the thread sanitizer sees one side only.
 *
 * The other side is memory that no other thread can know of, or that is used
 * where no race detector sees it: to watch it costs as much as to watch what
 * threads share, and finds nothing.
 */
#ifndef FAKECUDA_UNSEEN_H
#define FAKECUDA_UNSEEN_H

#include <string.h>

#if defined(__has_feature)
#define UNSEEN_FEATURE(name) __has_feature(name)
#else
#define UNSEEN_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || UNSEEN_FEATURE(thread_sanitizer)
/* the sanitizer's own; reads and writes are both ignored in between */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void __tsan_read_range(void *at, long size);
void __tsan_write_range(void *at, long size);

#define unseen_begin() AnnotateIgnoreReadsBegin(__FILE__, __LINE__)
#define unseen_end() AnnotateIgnoreReadsEnd(__FILE__, __LINE__)
#define unseen_but_read(at, size) __tsan_read_range((void *)(at), (long)(size))
#define unseen_but_written(at, size) __tsan_write_range(at, (long)(size))
#else
#define unseen_begin() ((void)0)
#define unseen_end() ((void)0)
#define unseen_but_read(at, size) ((void)0)
#define unseen_but_written(at, size) ((void)0)
#endif

static inline void copy_from_unseen(void *to, const void *from, size_t n)
{
	unseen_begin();
	memmove(to, from, n);
	unseen_end();
	unseen_but_written(to, n);
}

static inline void copy_to_unseen(void *to, const void *from, size_t n)
{
	unseen_but_read(from, n);
	unseen_begin();
	memmove(to, from, n);
	unseen_end();
}

#endif
