// SPDX-License-Identifier: Apache-2.0
/*
 * stream - IO in the order of the application's streams.
 *
 * A stream is the application's; we keep its name and the promises made for
 * it, never the stream.
 */
#ifndef CF_ENGINE_STREAM_H
#define CF_ENGINE_STREAM_H

#include "core/config.h"
#include "engine/sop.h"

/* Whether configuration leaves workers, without which there is no stream IO. */
bool cf_streams_allowed(const struct cf_config *config);

/*
 * Loads what the streams of the current context, if there is one, will need: to
 * load it later could be to wait for a stream that waits for the caller. Does
 * nothing while the default stream there is busy. Any thread; in a session.
 */
void cf_streams_prepare(void);

/*
 * flags: CU_FILE_STREAM_*. 0; -CU_FILE_DRIVER_NOT_INITIALIZED,
 * -CU_FILE_PLATFORM_NOT_SUPPORTED (no stream IO here), -CU_FILE_INVALID_VALUE
 * (unknown flags, not a stream, registered already), -ENOMEM or a CUDA code.
 */
int cf_stream_register(CUstream stream, unsigned flags);

/*
 * Waits for the stream's operations, then forgets it. 0;
 * -CU_FILE_DRIVER_NOT_INITIALIZED, or -CU_FILE_INVALID_VALUE (not registered).
 */
int cf_stream_deregister(CUstream stream);

/* 0, and it will happen; or a negative code, and nothing was put anywhere. */
int cf_stream_submit(const struct cf_sop_call *call);

/*
 * The same for a batch's entries, with the codes of cf_batch_pack, too. A
 * stream that is being recorded is refused with a CUDA code.
 */
int cf_stream_submit_batch(CUfileBatchHandle_t batch, unsigned nr,
			   const CUfileIOParams_t *params, CUstream stream);

void cf_streams_open(const struct cf_config *config);
/*
 * Before the handles go. Operations that have not begun end with an error:
 * those with bells at once, others when their streams come to them.
 */
void cf_streams_close(void);

void cf_streams_fork_prepare(void);
void cf_streams_fork_parent(void);
void cf_streams_fork_child(void);

#endif
