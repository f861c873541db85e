// SPDX-License-Identifier: Apache-2.0
/* trial - see trial.h. No state, no lock. */
#include "core/trial.h"

#include <errno.h>
#include "seam/os.h"

/* Multiples of an odd number: no two of them are equal in 64 bits. */
void cf_trial_pattern(uint64_t *words, size_t at, uint64_t round)
{
	uint64_t first = at + (round << 40);

	for (size_t i = 0; i < CF_TRIAL_WORDS; i++)
		words[i] = (first + i + 1) * 0x9e3779b97f4a7c15ull;
}

int cf_trial_move(const int pipe[2], void *to, const void *from, size_t size)
{
	ssize_t n = cf_os->write(pipe[1], from, size);

	if (n == (ssize_t)size)
		n = cf_os->read(pipe[0], to, size);
	if (n < 0)
		return (int)n;
	return n == (ssize_t)size ? 0 : -EIO;
}
