// SPDX-License-Identifier: Apache-2.0
/*
 * log - one line for each decision, to a file that configuration asked for.
 *
 * There is no log, and no file, unless the configuration names a level or a
 * path (contract 4.4). The first line that passes the level opens the file. Any
 * thread may log; errno is preserved.
 * Lock: the log's own, innermost; file calls on the log are made under it.
 */
#ifndef CF_CORE_LOG_H
#define CF_CORE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include "seam/hidden.h"

/* Most important first. */
enum cf_log_level {
	CF_LOG_NOTICE,
	CF_LOG_ERROR,
	CF_LOG_WARN,
	CF_LOG_INFO,
	CF_LOG_DEBUG,
	CF_LOG_TRACE
};

struct cf_config;

/* Lines above this level are dropped; -1: all are. Written by log.c only. */
extern CF_HIDDEN _Atomic int cf_log_threshold;

/* Starts the log, or restarts it, as the configuration says. */
void cf_log_configure(const struct cf_config *c);
/* Closes the file; nothing is logged until the next cf_log_configure. */
void cf_log_reset(void);
/* In the child of a fork: the lock may have been held by a lost thread. */
void cf_log_after_fork(void);

/* The number of a level; -1: there is no level of that name. */
int cf_log_level_by_name(const char *name);

void cf_log_write(enum cf_log_level level, const char *file, int line,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Whether lines of that level are written. Read relaxed: while the log is being
 * reconfigured one line more or less does not matter, and cf_log_write takes
 * the lock.
 */
static inline bool cf_log_takes(enum cf_log_level level)
{
	return (int)level <=
	       atomic_load_explicit(&cf_log_threshold, memory_order_relaxed);
}

#define cf_log(level, ...) \
	do { \
		if (cf_log_takes(level)) \
			cf_log_write((level), __FILE__, __LINE__, \
				     __VA_ARGS__); \
	} while (0)

/*
 * A place in the data path that logs. Its lines are bounded, lest a program
 * that fails a million times a second fills a disk. Lines left out are counted,
 * and the count is logged before its next line, or at the reset.
 */
struct cf_log_site {
	const char *file;
	int line;
	enum cf_log_level level;
	/* under the log's lock: */
	long second; /* in which nr lines were written */
	unsigned nr, left_out;
	bool listed;
	struct cf_log_site *next;
};

/* A place writes so many lines in a second; more are left out. */
#define CF_LOG_SITE_LINES 20

/* Takes the lock; true if the place may write a line now. */
bool cf_log_site_may(struct cf_log_site *site);

/* As cf_log, for the data path. */
#define cf_log_limited(level_, ...) \
	do { \
		static struct cf_log_site site_ = { .file = __FILE__, \
						    .line = __LINE__, \
						    .level = (level_) }; \
		if (cf_log_takes(level_) && cf_log_site_may(&site_)) \
			cf_log_write((level_), __FILE__, __LINE__, \
				     __VA_ARGS__); \
	} while (0)

#endif
