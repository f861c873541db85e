// SPDX-License-Identifier: Apache-2.0
/*
 * Where the log goes, what a line looks like, and when there is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/config.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "seam/os.h"

static char dir[] = "/tmp/test_log_XXXXXX";
static const char *env_level, *env_path, *env_limit;
static char path[64];
static int opens;
/* a thread that is held while it writes */
static _Thread_local bool is_held;
static atomic_bool is_writing, lets_write;

static const char *fake_getenv(const char *name)
{
	if (!strcmp(name, "CUFILE_LOGGING_LEVEL"))
		return env_level;
	if (!strcmp(name, "CUFILE_LOGFILE_PATH"))
		return env_path;
	if (!strcmp(name, "CUFILE_LOGFILE_MAX_SIZE_MB"))
		return env_limit;
	if (!strcmp(name, "CUFILE_ENV_PATH_JSON"))
		return "/nonexistent";
	return NULL;
}

static int counting_open(const char *name, int flags, mode_t mode)
{
	opens++;
	return cf_os_real.open(name, flags, mode);
}

static void configure(void)
{
	struct cf_config *c = cf_config_new();

	assert_non_null(c);
	assert_int_equal(cf_config_load(c, cf_config_staged()), 0);
	cf_log_configure(c);
	cf_config_free(c);
	opens = 0;
}

/* The caller frees it; NULL where there is no file. */
static char *content(const char *name)
{
	char *text = calloc(1, 4 << 20);
	FILE *f = fopen(name, "r");
	size_t n;

	assert_non_null(text);
	if (!f) {
		free(text);
		return NULL;
	}
	n = fread(text, 1, (4 << 20) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static bool file_has(const char *name, const char *part)
{
	char *text = content(name);
	bool has = text && strstr(text, part);

	free(text);
	return has;
}

static int setup(void **state)
{
	static struct cf_os fake;

	(void)state;
	fake = cf_os_real;
	fake.getenv = fake_getenv;
	fake.open = counting_open;
	cf_os = &fake;
	env_level = env_path = env_limit = NULL;
	atomic_store(&lets_write, false);
	snprintf(path, sizeof(path), "%s/the.log", dir);
	return chdir(dir);
}

static int teardown(void **state)
{
	(void)state;
	atomic_store(&lets_write, true);
	cf_log_reset();
	cf_staged_reset(cf_config_staged());
	unlink(path);
	unlink("cufile.log");
	cf_os = &cf_os_real;
	return 0;
}

static void there_is_no_log_unless_somebody_asks(void **state)
{
	(void)state;
	configure();
	cf_log(CF_LOG_NOTICE, "nobody asked");
	assert_int_equal(opens, 0);
	assert_int_not_equal(access("cufile.log", F_OK), 0);
	env_path = "";
	configure();
	cf_log(CF_LOG_NOTICE, "nor here");
	assert_int_equal(opens, 0);
}

/* A file that is closed too early must not hand its number to the log. */
static void the_log_takes_no_number_that_a_file_could_get(void **state)
{
	int before = open("/dev/null", O_RDONLY), after;

	(void)state;
	close(before);
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "a line");
	assert_int_equal(access(path, F_OK), 0);
	after = open("/dev/null", O_RDONLY);
	assert_int_equal(after, before);
	close(after);
}

static int number_of_the_log(void)
{
	struct stat log, st;
	int fd = 3;

	assert_int_equal(stat(path, &log), 0);
	while (fstat(fd, &st) || st.st_ino != log.st_ino)
		assert_in_range(fd++, 3, 2000);
	return fd;
}

/* A program that closes all that it finds gets the number for a file. */
static void a_file_that_gets_the_number_of_the_log_is_not_written(void **state)
{
	int taken, number, again;

	(void)state;
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "first");
	number = number_of_the_log();
	taken = open("taken", O_RDWR | O_CREAT, 0600);
	assert_true(taken >= 0);
	assert_int_equal(dup2(taken, number), number);
	cf_log(CF_LOG_ERROR, "second");
	assert_int_equal(lseek(taken, 0, SEEK_END), 0);
	assert_true(file_has(path, "second"));
	/* nor is it closed */
	again = number_of_the_log();
	assert_int_equal(dup2(taken, again), again);
	cf_log_reset();
	assert_int_equal(close(number) | close(again) | close(taken), 0);
	unlink("taken");
}

static void the_file_is_created_by_the_first_line_that_passes(void **state)
{
	(void)state;
	env_path = path;
	configure();
	cf_log(CF_LOG_WARN, "not important enough");
	assert_int_not_equal(access(path, F_OK), 0);
	cf_log(CF_LOG_ERROR, "important");
	assert_true(file_has(path, "important"));
	assert_false(file_has(path, "not important enough"));
}

/* contract 4.4 */
static void a_line_has_time_ids_level_place_and_text(void **state)
{
	static const char pattern[] =
		"^ [0-3][0-9]-[01][0-9]-20[0-9]{2} [0-2][0-9]:[0-5][0-9]:[0-6][0-9]:[0-9]{3} "
		"\\[pid=[0-9]+ tid=[0-9]+\\] WARN   test_log:[0-9]+ handle 7 off 4096\n$";
	regex_t re;
	char *text;

	(void)state;
	env_path = path;
	env_level = "WARN";
	configure();
	cf_log(CF_LOG_WARN, "handle %d off %d", 7, 4096);
	text = content(path);
	assert_non_null(text);
	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	if (regexec(&re, text, 0, NULL, 0))
		fail_msg("the line is \"%s\"", text);
	regfree(&re);
	free(text);
}

/* The C library refuses a letter that there is none of, as it does memory. */
static void a_line_that_cannot_be_printed_has_its_head(void **state)
{
	char *text;

	(void)state;
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "name %ls", (wchar_t[]){ INT_MAX, 0 });
	cf_log(CF_LOG_ERROR, "the next one");
	text = content(path);
	assert_non_null(text);
	assert_non_null(strstr(text, " ERROR  test_log:"));
	assert_non_null(strstr(text, " the next one\n"));
	free(text);
}

static time_t frozen;

static int frozen_clock(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ .tv_sec = frozen, .tv_nsec = 7000000 };
	return 0;
}

static void the_date_is_right_on_awkward_days(void **state)
{
	static const struct {
		time_t sec;
		const char *text;
	} days[] = {
		{ 0, " 01-01-1970 00:00:00:007 " },
		{ 951782399, " 28-02-2000 23:59:59:007 " },
		{ 951782400, " 29-02-2000 00:00:00:007 " },
		{ 951868800, " 01-03-2000 00:00:00:007 " },
		{ 978307199, " 31-12-2000 23:59:59:007 " },
		{ 1740787200, " 01-03-2025 00:00:00:007 " },
		{ 4107542400, " 01-03-2100 00:00:00:007 " },
	};
	struct cf_os fake = *cf_os;

	(void)state;
	setenv("TZ", "UTC0", 1);
	tzset();
	fake.clock_gettime = frozen_clock;
	cf_os = &fake;
	env_path = path;
	configure();
	for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
		frozen = days[i].sec;
		cf_log(CF_LOG_ERROR, "x");
		if (!file_has(path, days[i].text))
			fail_msg("no line with \"%s\"", days[i].text);
	}
	cf_log_reset();
}

static void times_are_local(void **state)
{
	struct cf_os fake = *cf_os;

	(void)state;
	setenv("TZ", "XYZ-2", 1); /* two hours east */
	tzset();
	fake.clock_gettime = frozen_clock;
	cf_os = &fake;
	frozen = 978307199;
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "x");
	assert_true(file_has(path, " 01-01-2001 01:59:59:007 "));
	cf_log_reset();
	unsetenv("TZ");
	tzset();
}

static void each_level_lets_more_important_ones_pass(void **state)
{
	static const char *const names[] = { "NOTICE", "ERROR", "WARN",
					     "INFO",   "DEBUG", "TRACE" };

	(void)state;
	env_path = path;
	for (int level = CF_LOG_NOTICE; level <= CF_LOG_TRACE; level++) {
		env_level = names[level];
		unlink(path);
		configure();
		for (int line = CF_LOG_NOTICE; line <= CF_LOG_TRACE; line++)
			cf_log((enum cf_log_level)line, "line of %s",
			       names[line]);
		for (int line = CF_LOG_NOTICE; line <= CF_LOG_TRACE; line++) {
			char part[32];

			snprintf(part, sizeof(part), "line of %s", names[line]);
			assert_int_equal(file_has(path, part), line <= level);
		}
		assert_int_equal(cf_log_level_by_name(names[level]), level);
	}
	assert_int_equal(cf_log_level_by_name("bogus"), -1);
}

static void a_level_alone_logs_to_the_current_directory(void **state)
{
	(void)state;
	env_level = "INFO";
	configure();
	cf_log(CF_LOG_INFO, "here");
	assert_true(file_has("cufile.log", "here"));
}

static void a_staged_directory_is_used_and_a_path_goes_before_it(void **state)
{
	char in_dir[80];

	(void)state;
	snprintf(in_dir, sizeof(in_dir), "%s/sub/cufile.log", dir);
	assert_int_equal(mkdir("sub", 0755), 0);
	in_dir[strlen(in_dir) - strlen("/cufile.log")] = '\0';
	cf_staged_set_string(cf_config_staged(), CF_CFG_LOGGING_DIR, in_dir);
	snprintf(in_dir, sizeof(in_dir), "%s/sub/cufile.log", dir);
	configure();
	cf_log(CF_LOG_ERROR, "in the directory");
	assert_true(file_has(in_dir, "in the directory"));
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "at the path");
	assert_true(file_has(path, "at the path"));
	assert_false(file_has(in_dir, "at the path"));
	unlink(in_dir);
	rmdir("sub");
}

static void a_log_that_cannot_be_opened_is_given_up_until_configured_again(
	void **state)
{
	(void)state;
	env_path = "/nonexistent/dir/cufile.log";
	configure();
	cf_log(CF_LOG_ERROR, "lost");
	cf_log(CF_LOG_ERROR, "lost");
	assert_int_equal(opens, 1);
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "found");
	assert_true(file_has(path, "found"));
}

static void links_directories_and_pipes_are_refused(void **state)
{
	char *text;

	(void)state;
	env_path = path;
	close(creat("target", 0644));
	assert_int_equal(symlink("target", path), 0);
	configure();
	cf_log(CF_LOG_ERROR, "x");
	text = content("target");
	assert_string_equal(text, "");
	free(text);
	unlink("target");
	unlink(path);

	assert_int_equal(mkfifo(path, 0644), 0);
	configure();
	cf_log(CF_LOG_ERROR, "this would wait for a reader");
	assert_int_equal(opens, 1);
	unlink(path);

	env_path = dir;
	configure();
	cf_log(CF_LOG_ERROR, "x");
	assert_int_equal(opens, 1);
}

/* Who may make links in a shared directory could spoil any file of ours. */
static void a_second_name_of_a_file_is_refused(void **state)
{
	char *text;

	(void)state;
	env_path = path;
	close(creat("precious", 0600));
	assert_int_equal(link("precious", path), 0);
	configure();
	cf_log(CF_LOG_ERROR, "x");
	text = content("precious");
	assert_string_equal(text, "");
	free(text);
	unlink("precious");
	/* with one name it is as good as any */
	configure();
	cf_log(CF_LOG_ERROR, "its last name");
	assert_true(file_has(path, "its last name"));
}

static void begin_full_log(const char *name)
{
	env_path = name;
	env_limit = "1";
	configure();
	cf_log(CF_LOG_ERROR, "first");
	assert_int_equal(truncate(name, 1 << 20), 0);
}

/* The full log is looked at again: the path may name another file by now. */
static void a_full_log_empties_no_file_that_took_its_place(void **state)
{
	char *text;

	(void)state;
	begin_full_log(path);
	unlink(path);
	write_file("precious", "keep");
	assert_int_equal(link("precious", path), 0);
	cf_log(CF_LOG_ERROR, "too much");
	text = content("precious");
	assert_string_equal(text, "keep");
	free(text);
	unlink("precious");
}

/* Another process has begun it anew. */
static void a_full_log_that_was_moved_away_leaves_the_next_one(void **state)
{
	(void)state;
	begin_full_log(path);
	assert_int_equal(rename(path, "old.log"), 0);
	write_file(path, "another process's line\n");
	cf_log(CF_LOG_ERROR, "next");
	assert_true(file_has(path, "another process's line"));
	assert_true(file_has(path, "next"));
	unlink("old.log");
}

/* Of a path from the directory in which the driver was opened. */
static void a_full_log_stays_in_its_directory(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("elsewhere", 0700), 0);
	write_file("elsewhere/here.log", "precious");
	assert_int_equal(truncate("elsewhere/here.log", 1 << 20), 0);
	begin_full_log("here.log");
	assert_int_equal(chdir("elsewhere"), 0);
	cf_log(CF_LOG_ERROR, "next");
	assert_int_equal(stat("here.log", &st), 0);
	assert_int_equal(st.st_size, 1 << 20);
	assert_true(file_has("here.log", "precious"));
	assert_int_equal(chdir(".."), 0);
	assert_true(file_has("here.log", "next"));
	unlink("here.log");
	unlink("elsewhere/here.log");
	rmdir("elsewhere");
}

static void a_directory_that_may_not_be_written_costs_the_lines(void **state)
{
	(void)state;
	if (geteuid() == 0 && seteuid(65534))
		skip();
	/* the directory is root's, or the file in it of another */
	env_path = "/proc/1/cufile.log";
	configure();
	cf_log(CF_LOG_ERROR, "lost");
	cf_log(CF_LOG_ERROR, "lost");
	assert_int_equal(opens, 1);
	assert_int_equal(seteuid(getuid()), 0);
}

static void an_address_is_shown_by_a_tag_and_its_place_in_its_page(void **state)
{
	static char page[8192] __attribute__((aligned(4096)));
	char line[64], again[64], other[64], null[64];

	(void)state;
	snprintf(line, sizeof(line), CF_TAG, cf_tag(page + 0x234));
	snprintf(again, sizeof(again), CF_TAG, cf_tag(page + 0x234));
	snprintf(other, sizeof(other), CF_TAG, cf_tag(page + 0x1234));
	snprintf(null, sizeof(null), CF_TAG, cf_tag(NULL));
	assert_int_equal(strlen(line), strlen("#00000000:000"));
	assert_string_equal(line, again);
	assert_string_equal(line + 9, ":234");
	assert_string_equal(other + 9, ":234");
	assert_string_not_equal(line, other);
	assert_string_equal(null, "#00000000:000");
}

static void dev_stderr_is_our_own_stderr_and_stays_open(void **state)
{
	int saved = dup(STDERR_FILENO);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	(void)state;
	dup2(fd, STDERR_FILENO);
	env_path = "/dev/stderr";
	configure();
	cf_log(CF_LOG_ERROR, "to stderr");
	cf_log_reset();
	assert_int_equal(opens, 0);
	assert_true(fcntl(STDERR_FILENO, F_GETFD) >= 0);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	assert_true(file_has(path, "to stderr"));
}

static void a_full_log_starts_over(void **state)
{
	static char filler[1000];
	struct stat st;

	(void)state;
	memset(filler, 'x', sizeof(filler) - 1);
	env_path = path;
	env_limit = "1";
	configure();
	for (int i = 0; i < 1200; i++) {
		cf_log(CF_LOG_ERROR, "%d %s", i, filler);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size <= 1 << 20);
	}
	assert_true(file_has(path, " 1199 x"));
	assert_false(file_has(path, ": 0 x"));
	assert_true(st.st_size < 1 << 19);
}

static void without_a_limit_the_log_grows(void **state)
{
	static char filler[1000];
	struct stat st;

	(void)state;
	memset(filler, 'x', sizeof(filler) - 1);
	env_path = path;
	env_limit = "-1";
	configure();
	for (int i = 0; i < 1200; i++)
		cf_log(CF_LOG_ERROR, "%d %s", i, filler);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 1 << 20);
}

static void a_name_begins_no_line_and_commands_no_terminal(void **state)
{
	char *text;

	(void)state;
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "%s", "a\n 27-11-2026\r\t\033[2J\177\303\244");
	text = content(path);
	assert_non_null(strstr(text, " a? 27-11-2026???[2J?\303\244\n"));
	assert_null(strchr(strchr(text, '\n') + 1, '\n'));
	free(text);
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
	static char filler[10000];
	char *text;

	(void)state;
	memset(filler, 'x', sizeof(filler) - 1);
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "%s", filler);
	cf_log(CF_LOG_ERROR, "next");
	text = content(path);
	assert_non_null(strstr(text, "x\n "));
	assert_true(strlen(text) < 3000);
	free(text);
}

/* So many lines of one place, and what is in the log then. */
static void write_from_one_place(int nr)
{
	for (int i = 0; i < nr; i++)
		cf_log_limited(CF_LOG_ERROR, "line %d.", i);
}

static unsigned count(const char *part)
{
	char *text = content(path);
	unsigned nr = 0;

	for (char *at = text; (at = strstr(at, part)); at++)
		nr++;
	free(text);
	return nr;
}

static void a_place_has_so_many_lines_a_second_and_the_rest_is_counted(
	void **state)
{
	struct cf_os fake = *cf_os;

	(void)state;
	fake.clock_gettime = frozen_clock;
	cf_os = &fake;
	frozen = 1000;
	env_path = path;
	configure();
	write_from_one_place(500);
	assert_int_equal(count(" line "), CF_LOG_SITE_LINES);
	assert_int_equal(count("left out"), 0);
	/* other places are other places */
	cf_log_limited(CF_LOG_ERROR, "another");
	assert_int_equal(count("another"), 1);
	frozen = 1001;
	write_from_one_place(2);
	assert_int_equal(count(" line "), CF_LOG_SITE_LINES + 2);
	assert_int_equal(count("480 more lines from here were left out"), 1);
	write_from_one_place(100);
	cf_log_reset();
	assert_int_equal(count(" line "), 2 * CF_LOG_SITE_LINES);
	assert_int_equal(count("82 more lines from here were left out"), 1);
	/* and it is told once */
	configure();
	frozen = 1002;
	write_from_one_place(1);
	cf_log_reset();
	assert_int_equal(count("left out"), 2);
}

static void a_place_below_the_level_counts_nothing(void **state)
{
	(void)state;
	env_path = path;
	configure();
	for (int i = 0; i < 500; i++)
		cf_log_limited(CF_LOG_INFO, "x");
	cf_log_reset();
	assert_int_equal(access(path, F_OK), -1);
}

static void errno_survives_a_line(void **state)
{
	(void)state;
	env_path = "/nonexistent/dir/cufile.log";
	configure();
	errno = EXDEV;
	cf_log(CF_LOG_ERROR, "x");
	assert_int_equal(errno, EXDEV);
}

static void after_a_reset_nothing_is_logged(void **state)
{
	(void)state;
	env_path = path;
	configure();
	cf_log(CF_LOG_ERROR, "before");
	cf_log_reset();
	cf_log(CF_LOG_ERROR, "afterwards");
	assert_true(file_has(path, "before"));
	assert_false(file_has(path, "afterwards"));
}

static void *log_many(void *arg)
{
	for (int i = 0; i < 500; i++)
		cf_log(CF_LOG_ERROR, "thread %s line", (const char *)arg);
	return NULL;
}

static void lines_of_many_threads_do_not_mix(void **state)
{
	static char names[4][2] = { "0", "1", "2", "3" };
	pthread_t threads[4];
	size_t lines = 0;
	char *text, *save = NULL;

	(void)state;
	env_path = path;
	configure();
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, log_many, names[i]),
			0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	text = content(path);
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		assert_int_equal(line[0], ' ');
		assert_string_equal(line + strlen(line) - 5, " line");
		lines++;
	}
	assert_int_equal(lines, 2000);
	free(text);
}

static ssize_t held_write(int fd, const void *buf, size_t size)
{
	atomic_store(&is_writing, is_held);
	while (is_held && !atomic_load(&lets_write))
		usleep(1000);
	return cf_os_real.write(fd, buf, size);
}

static void *log_slowly(void *arg)
{
	(void)arg;
	is_held = true;
	cf_log(CF_LOG_ERROR, "parent");
	return NULL;
}

static void child_logs(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		alarm(60);
		cf_log_after_fork();
		cf_log(CF_LOG_ERROR, "child");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* The parent's other thread holds the lock. */
static void a_forked_child_can_log(void **state)
{
	static struct cf_os slow;
	pthread_t thread;

	(void)state;
	slow = *cf_os;
	slow.write = held_write;
	cf_os = &slow;
	env_path = path;
	configure();
	assert_int_equal(pthread_create(&thread, NULL, log_slowly, NULL), 0);
	while (!atomic_load(&is_writing))
		usleep(1000);
	child_logs();
	assert_true(file_has(path, " child\n"));
	assert_false(file_has(path, " parent\n"));
	atomic_store(&lets_write, true);
	pthread_join(thread, NULL);
	assert_true(file_has(path, " parent\n"));
}

static void what_loading_had_to_say_reaches_the_log(void **state)
{
	struct cf_config *c = cf_config_new();

	(void)state;
	env_path = path;
	assert_int_equal(cf_config_load(c, NULL), 0);
	cf_log_configure(c);
	cf_config_report(c);
	cf_config_free(c);
	assert_true(file_has(path, "/nonexistent: No such file or directory"));
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(there_is_no_log_unless_somebody_asks),
		test(the_file_is_created_by_the_first_line_that_passes),
		test(a_line_has_time_ids_level_place_and_text),
		test(a_line_that_cannot_be_printed_has_its_head),
		test(the_date_is_right_on_awkward_days),
		test(times_are_local),
		test(each_level_lets_more_important_ones_pass),
		test(a_level_alone_logs_to_the_current_directory),
		test(a_staged_directory_is_used_and_a_path_goes_before_it),
		test(a_log_that_cannot_be_opened_is_given_up_until_configured_again),
		test(links_directories_and_pipes_are_refused),
		test(a_second_name_of_a_file_is_refused),
		test(a_full_log_empties_no_file_that_took_its_place),
		test(a_full_log_that_was_moved_away_leaves_the_next_one),
		test(a_full_log_stays_in_its_directory),
		test(a_directory_that_may_not_be_written_costs_the_lines),
		test(an_address_is_shown_by_a_tag_and_its_place_in_its_page),
		test(dev_stderr_is_our_own_stderr_and_stays_open),
		test(a_full_log_starts_over),
		test(without_a_limit_the_log_grows),
		test(a_name_begins_no_line_and_commands_no_terminal),
		test(a_long_line_is_cut_and_still_ends),
		test(the_log_takes_no_number_that_a_file_could_get),
		test(a_file_that_gets_the_number_of_the_log_is_not_written),
		test(a_place_has_so_many_lines_a_second_and_the_rest_is_counted),
		test(a_place_below_the_level_counts_nothing),
		test(errno_survives_a_line),
		test(after_a_reset_nothing_is_logged),
		test(lines_of_many_threads_do_not_mix),
		test(a_forked_child_can_log),
		test(what_loading_had_to_say_reaches_the_log),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (chdir("/") || rmdir(dir))
		return 1;
	return failed;
}
