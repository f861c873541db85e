// SPDX-License-Identifier: Apache-2.0
/*
 * picture - a file that SVG is written into: as it is, or through
 * rsvg-convert(1) where the name ends in .png.
 */
#ifndef GDSIO_PICTURE_H
#define GDSIO_PICTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct picture {
	const char *name;
	FILE *out;
	pid_t converter; /* 0: none */
};

bool picture_is_name(const char *name);

/* All answer false after reporting. Can there be such a file? */
bool picture_check(const char *name);
bool picture_begin(struct picture *picture, const char *name);
bool picture_end(struct picture *picture);

#endif
