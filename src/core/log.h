// SPDX-License-Identifier: Apache-2.0
/*
 * log - one line a decision, to a file that somebody asked for.
 *
 * There is no log, and no file, until a configuration names a level or a
 * place (contract 4.4). The file is opened by the first line that passes the
 * level. Any thread may log; errno is preserved.
 * Lock: log's own, innermost; nothing but the write happens under it.
 */
#ifndef CF_CORE_LOG_H
#define CF_CORE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

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
extern _Atomic int cf_log_threshold;

/* Starts, or starts afresh, with what the configuration says. */
void cf_log_configure(const struct cf_config *c);
/* Closes the file; nothing is logged until the next cf_log_configure. */
void cf_log_reset(void);
/* In the child of a fork: the lock may have been held by a lost thread. */
void cf_log_after_fork(void);

/* A level's name to its number; -1 for no level. */
int cf_log_level_by_name(const char *name);

void cf_log_write(enum cf_log_level level, const char *file, int line,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * The threshold is read relaxed: a line more or less while the log is being
 * reconfigured does not matter, and cf_log_write takes the lock.
 */
#define cf_log(level, ...) \
	do { \
		if ((int)(level) <= \
		    atomic_load_explicit(&cf_log_threshold, \
					 memory_order_relaxed)) \
			cf_log_write((level), __FILE__, __LINE__, \
				     __VA_ARGS__); \
	} while (0)

/*
 * One place of the data path that logs, so that a program that fails a
 * million times a second does not fill a disk. What was left out is counted,
 * and told before the next line, or at the reset.
 */
struct cf_log_site {
	const char *file;
	int line;
	enum cf_log_level level;
	/* the log's lock: */
	long second; /* in which nr lines were written */
	unsigned nr, left_out;
	bool listed;
	struct cf_log_site *next;
};

/* Lines of one place in one second; more are left out. */
#define CF_LOG_SITE_LINES 20

/* Takes the lock; true if the place may write a line now. */
bool cf_log_site_may(struct cf_log_site *site);

/* As cf_log, for the data path. */
#define cf_log_limited(level_, ...) \
	do { \
		static struct cf_log_site site_ = { .file = __FILE__, \
						    .line = __LINE__, \
						    .level = (level_) }; \
		if ((int)(level_) <= \
			    atomic_load_explicit(&cf_log_threshold, \
						 memory_order_relaxed) && \
		    cf_log_site_may(&site_)) \
			cf_log_write((level_), __FILE__, __LINE__, \
				     __VA_ARGS__); \
	} while (0)

#endif
