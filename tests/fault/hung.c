// SPDX-License-Identifier: Apache-2.0
/* hung - see hung.h. */
#include "hung.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "doors.h"

/* A life takes a fraction of a second, and a second or two when watched. */
#define PATIENCE_S (TH_SANITIZED ? 240 : 120)

static struct scenario *const *all;
static unsigned nr_all;
static const char *_Atomic life;

static void say(const char *text)
{
	(void)!write(STDERR_FILENO, text, strlen(text));
}

/* In a signal handler: nothing but write. */
static void tell(int sig)
{
	char digit[] = "0";

	say("hung: ");
	say(life);
	for (unsigned i = 0; i < nr_all; i++) {
		const char *doing = all[i]->doing;

		digit[0] = (char)('0' + i);
		say("\n  thread ");
		say(digit);
		say(", ");
		say(door_name(all[i]->door));
		say(", ");
		say(th_mem_name(all[i]->mem_kind));
		say(", ");
		say(th_file_name(all[i]->file_kind));
		say(": ");
		say(doing ? doing : "has not begun");
		if (all[i]->a.leased[0])
			say(", not given back: ");
		say(all[i]->a.leased);
	}
	say("\n");
	signal(sig, SIG_DFL);
	raise(sig);
}

void hung_of(struct scenario *const *scenarios, unsigned nr)
{
	all = scenarios;
	nr_all = nr;
}

void hung_watch(const char *what)
{
	life = what;
	signal(SIGALRM, tell);
	alarm(PATIENCE_S);
}
