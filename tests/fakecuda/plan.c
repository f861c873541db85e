// SPDX-License-Identifier: Apache-2.0
/*
 * plan - call counts, and calls that fail because a test planned it.
 *
 * A rule counts the calls that fit it from the moment it was made. Lock:
 * plan_lock, innermost; the table of calls and the rules are under it.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { MAX_RULES = 64 };

struct rule {
	char name[64];
	unsigned long first; /* the n-th fitting call, counted from 1 */
	bool and_later;
	int result;
	unsigned int delay_us;
	unsigned long seen;
};

static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[MAX_RULES];
static unsigned int nr_rules;
static struct fc_call *calls;

static bool parse_when(const char **p, struct rule *r)
{
	char *end;

	if (**p == '*') {
		r->first = 1;
		r->and_later = true;
		(*p)++;
		return true;
	}
	r->first = strtoul(*p, &end, 10);
	if (end == *p || r->first == 0)
		return false;
	r->and_later = *end == '+';
	*p = end + r->and_later;
	return true;
}

static bool parse_what(const char **p, struct rule *r)
{
	bool delay = **p == '@';
	const char *digits = *p + delay;
	char *end;
	unsigned long n = strtoul(digits, &end, 10);

	if (end == digits)
		return false;
	if (delay)
		r->delay_us = (unsigned int)n;
	else
		r->result = (int)n;
	*p = end;
	return true;
}

static bool parse_rule(const char **p, struct rule *r)
{
	size_t len = strcspn(*p, ":,");

	memset(r, 0, sizeof(*r));
	if (len == 0 || len >= sizeof(r->name) || (*p)[len] != ':')
		return false;
	memcpy(r->name, *p, len);
	*p += len + 1;
	if (!parse_when(p, r) || *(*p)++ != '=' || !parse_what(p, r))
		return false;
	if (**p == ',')
		(*p)++;
	else if (**p)
		return false;
	return true;
}

int fakecuda_plan(const char *text)
{
	struct rule made[MAX_RULES];
	unsigned int nr = 0;
	int r = -1;

	while (*text) {
		if (nr == MAX_RULES || !parse_rule(&text, &made[nr]))
			return -1;
		nr++;
	}
	pthread_mutex_lock(&plan_lock);
	if (nr_rules + nr <= MAX_RULES) {
		memcpy(rules + nr_rules, made, nr * sizeof(*made));
		nr_rules += nr;
		r = 0;
	}
	pthread_mutex_unlock(&plan_lock);
	return r;
}

void fakecuda_plan_clear(void)
{
	pthread_mutex_lock(&plan_lock);
	nr_rules = 0;
	pthread_mutex_unlock(&plan_lock);
}

static bool rule_fires(struct rule *r, const char *name)
{
	if (strcmp(r->name, "*") && strcmp(r->name, name))
		return false;
	r->seen++;
	return r->seen == r->first || (r->and_later && r->seen > r->first);
}

/* Counts a call; returns what it must answer, or 0. */
int fc_plan_answer(struct fc_call *call, unsigned int *delay_us)
{
	int result = 0;

	pthread_mutex_lock(&plan_lock);
	if (!atomic_load(&call->known)) {
		atomic_store(&call->known, true);
		call->next = calls;
		calls = call;
	}
	atomic_fetch_add(&call->calls, 1);
	for (unsigned int i = 0; i < nr_rules; i++) {
		if (!rule_fires(&rules[i], call->name))
			continue;
		*delay_us += rules[i].delay_us;
		if (!result)
			result = rules[i].result;
	}
	pthread_mutex_unlock(&plan_lock);
	return result;
}

unsigned long fakecuda_calls(const char *name)
{
	unsigned long n = 0;

	pthread_mutex_lock(&plan_lock);
	for (struct fc_call *c = calls; c; c = c->next)
		if (!name || !strcmp(c->name, name))
			n += atomic_load(&c->calls);
	pthread_mutex_unlock(&plan_lock);
	return n;
}

void fc_plan_reset(void)
{
	pthread_mutex_lock(&plan_lock);
	for (struct fc_call *c = calls; c; c = c->next)
		atomic_store(&c->calls, 0);
	pthread_mutex_unlock(&plan_lock);
}
