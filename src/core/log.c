// SPDX-License-Identifier: Apache-2.0
/*
 * log - one line for each decision, to a file that configuration asked for.
 *
 * Each line is one write in append mode, so that processes may share the file.
 * At the size limit the file is truncated. If it cannot be opened, lines are
 * dropped silently until the log is configured again.
 *
 * Each place of the data path may log so many lines a second; places that have
 * left lines out are kept in a list until the log is reset.
 */
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/config.h"
#include "core/log_line.h"
#include "seam/os.h"

#define LINE_SIZE 2048
#define PATH_SIZE 4096
#define NOT_OPEN (-1)

_Atomic int cf_log_threshold = -1;

static struct {
	pthread_mutex_t lock; /* guards all fields below */
	char path[PATH_SIZE];
	uint64_t limit; /* bytes; UINT64_MAX: none */
	long utc_offset;
	int fd;
	bool owned; /* false: fd is the process's stdout or stderr */
	dev_t dev;  /* with ino: fd's file, if owned */
	ino_t ino;
	struct cf_log_site *sites; /* that have left lines out */
} the_log = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = NOT_OPEN };

static void set_threshold(int level)
{
	atomic_store_explicit(&cf_log_threshold, level, memory_order_relaxed);
}

static bool is_lost_locked(void)
{
	return cf_os_is_lost(the_log.fd, the_log.dev, the_log.ino);
}

static void close_locked(void)
{
	if (the_log.fd != NOT_OPEN && the_log.owned && !is_lost_locked())
		cf_os->close(the_log.fd);
	the_log.fd = NOT_OPEN;
}

static bool wanted(const struct cf_config *c)
{
	return cf_config_source(c, CF_CFG_LOGGING_LEVEL) !=
		       CF_CFG_FROM_DEFAULT ||
	       cf_config_string(c, CF_CFG_LOGGING_DIR)[0] ||
	       cf_config_string(c, CF_CFG_LOGFILE_PATH)[0];
}

/*
 * Makes the path absolute: a full log is opened again by its path, and by then
 * the program may be in another directory. False: the path is too long.
 */
static bool make_path_locked(const struct cf_config *c)
{
	const char *path = cf_config_string(c, CF_CFG_LOGFILE_PATH);
	const char *dir = cf_config_string(c, CF_CFG_LOGGING_DIR);
	const char *name = path[0] ? path : dir[0] ? dir : ".";
	char from[PATH_SIZE] = "";
	int n;

	if (name[0] != '/' && !getcwd(from, sizeof(from)))
		from[0] = '\0';
	n = snprintf(the_log.path, PATH_SIZE, "%s%s%s%s", from,
		     from[0] ? "/" : "", name, path[0] ? "" : "/cufile.log");
	return n > 0 && n < PATH_SIZE;
}

/*
 * The C library's time zone code takes a lock that a forked child may find
 * held. So it is asked once, here, and lines need only arithmetic.
 */
static long ask_utc_offset(void)
{
	struct timespec now = { 0 };
	struct tm tm;

	cf_os->clock_gettime(CLOCK_REALTIME, &now);
	return localtime_r(&now.tv_sec, &tm) ? tm.tm_gmtoff : 0;
}

void cf_log_configure(const struct cf_config *c)
{
	uint64_t mb = cf_config_size(c, CF_CFG_LOGGING_MAX_FILE_SIZE_MB);
	int level = -1;

	pthread_mutex_lock(&the_log.lock);
	close_locked();
	the_log.limit = mb == CF_CFG_UNLIMITED ? UINT64_MAX : mb << 20;
	the_log.utc_offset = ask_utc_offset();
	if (wanted(c) && make_path_locked(c))
		level = cf_log_level_by_name(
			cf_config_string(c, CF_CFG_LOGGING_LEVEL));
	set_threshold(level);
	pthread_mutex_unlock(&the_log.lock);
}

/* Logs how many lines each place has left out, and empties the list. */
static void tell_sites_locked(void);

void cf_log_reset(void)
{
	pthread_mutex_lock(&the_log.lock);
	tell_sites_locked();
	close_locked();
	set_threshold(-1);
	pthread_mutex_unlock(&the_log.lock);
}

void cf_log_after_fork(void)
{
	pthread_mutex_init(&the_log.lock, NULL);
}

/*
 * No file with a second name, which another user may have linked to a file of
 * ours in a shared directory (O_NOFOLLOW refuses symbolic links); no directory,
 * socket or pipe (O_NONBLOCK: the open of a pipe would wait for a reader). A
 * character device, for instance a terminal, is allowed.
 */
static bool may_be_log_locked(int fd)
{
	struct stat st;

	if (cf_os->fstat(fd, &st))
		return false;
	the_log.dev = st.st_dev;
	the_log.ino = st.st_ino;
	return S_ISCHR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink < 2);
}

static int open_checked_locked(void)
{
	int fd = cf_os->open(the_log.path,
			     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
				     O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
			     0644);

	if (fd < 0)
		return NOT_OPEN;
	if (may_be_log_locked(fd))
		return cf_os_move_up(fd);
	cf_os->close(fd);
	return NOT_OPEN;
}

static void open_locked(void)
{
	the_log.owned = false;
	if (!strcmp(the_log.path, "/dev/stderr"))
		the_log.fd = STDERR_FILENO;
	else if (!strcmp(the_log.path, "/dev/stdout"))
		the_log.fd = STDOUT_FILENO;
	if (the_log.fd != NOT_OPEN)
		return;
	the_log.fd = open_checked_locked();
	the_log.owned = the_log.fd != NOT_OPEN;
	if (!the_log.owned)
		set_threshold(-1);
}

/* Asks for the size, as other processes may write to the file, too. */
static bool is_full_locked(size_t line_size)
{
	struct stat st;

	return the_log.owned && !cf_os->fstat(the_log.fd, &st) &&
	       S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size + line_size > the_log.limit;
}

static void truncate_if_full_locked(size_t line_size)
{
	if (!is_full_locked(line_size))
		return;
	/* another process may have begun a new file at the path by now */
	close_locked();
	open_locked();
	if (is_full_locked(line_size))
		(void)cf_os->resize(the_log.fd, 0);
}

static void write_locked(const char *line, size_t size)
{
	/* the log may have been reset since the level was read */
	if (atomic_load_explicit(&cf_log_threshold, memory_order_relaxed) < 0)
		return;
	if (the_log.fd != NOT_OPEN && the_log.owned && is_lost_locked())
		the_log.fd = NOT_OPEN;
	if (the_log.fd == NOT_OPEN)
		open_locked();
	if (the_log.fd != NOT_OPEN)
		truncate_if_full_locked(size);
	/* errors are ignored: a full disk costs the line, nothing else */
	if (the_log.fd != NOT_OPEN)
		cf_os->write(the_log.fd, line, size);
}

static void vlog_locked(const struct cf_log_place *place, const char *fmt,
			va_list args)
{
	char buf[LINE_SIZE];

	write_locked(buf, cf_log_line(buf, sizeof(buf), the_log.utc_offset,
				      place, fmt, args));
}

void cf_log_write(enum cf_log_level level, const char *file, int line,
		  const char *fmt, ...)
{
	int saved_errno = errno;
	va_list args;

	pthread_mutex_lock(&the_log.lock);
	va_start(args, fmt);
	vlog_locked(&(struct cf_log_place){ level, file, line }, fmt, args);
	va_end(args);
	pthread_mutex_unlock(&the_log.lock);
	errno = saved_errno;
}

/* As cf_log_write, with the lock held. */
__attribute__((format(printf, 4, 5))) static void log_locked(
	enum cf_log_level level, const char *file, int line, const char *fmt,
	...)
{
	va_list args;

	va_start(args, fmt);
	vlog_locked(&(struct cf_log_place){ level, file, line }, fmt, args);
	va_end(args);
}

static void tell_left_out_locked(struct cf_log_site *site)
{
	if (site->left_out)
		log_locked(site->level, site->file, site->line,
			   "%u more lines from here were left out",
			   site->left_out);
	site->left_out = 0;
}

static void tell_sites_locked(void)
{
	while (the_log.sites) {
		struct cf_log_site *site = the_log.sites;

		the_log.sites = site->next;
		site->listed = false;
		tell_left_out_locked(site);
	}
}

static void list_locked(struct cf_log_site *site)
{
	if (site->listed)
		return;
	site->listed = true;
	site->next = the_log.sites;
	the_log.sites = site;
}

bool cf_log_site_may(struct cf_log_site *site)
{
	int saved_errno = errno;
	struct timespec now = { 0 };
	bool may;

	cf_os->clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&the_log.lock);
	if (site->second != (long)now.tv_sec) {
		tell_left_out_locked(site);
		site->second = (long)now.tv_sec;
		site->nr = 0;
	}
	may = site->nr < CF_LOG_SITE_LINES;
	if (may) {
		site->nr++;
	} else {
		site->left_out++;
		list_locked(site);
	}
	pthread_mutex_unlock(&the_log.lock);
	errno = saved_errno;
	return may;
}
