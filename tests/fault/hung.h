// SPDX-License-Identifier: Apache-2.0
/*
 * hung - a life that does not end is named: what fails in it, and what each of
 * its threads does. The program ends then.
 */
#ifndef TESTS_HUNG_H
#define TESTS_HUNG_H

#include "scenario.h"

/* The scenarios of the lives that follow; they stay until the next call. */
void hung_of(struct scenario *const *scenarios, unsigned nr);
/* A life begins, and the one before it is over. what stays until the next. */
void hung_watch(const char *what);

#endif
