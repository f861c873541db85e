// SPDX-License-Identifier: Apache-2.0
/*
 * primary - the context of a device that everybody shares, by retain count.
 *
 * Its handle stays the same from one life to the next; its id does not.
 */
#include "internal.h"

static struct primary {
	struct fc_handle *h;
	struct fc_ctx *ctx; /* NULL while inactive */
	int retains;
	unsigned int flags;
} primaries[FC_MAX_GPUS];

static int retain(CUcontext *out, CUdevice dev)
{
	struct primary *p;

	if (!out)
		return CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	p = &primaries[dev];
	if (!p->ctx) {
		p->ctx = fc_ctx_new(dev, p->flags, p->h);
		p->ctx->primary = true;
		p->h = p->ctx->h;
	}
	p->retains++;
	atomic_fetch_add(&fc.live[LIVE_PRIMARY], 1);
	*out = (CUcontext)p->h;
	return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(retain(ctx, dev));
}

static void kill(struct primary *p)
{
	struct fc_ctx *c = p->ctx;

	p->ctx = NULL;
	if (c)
		fc_ctx_kill(c);
}

static int release(CUdevice dev)
{
	struct primary *p;

	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	p = &primaries[dev];
	if (p->retains == 0) {
		fc_complain("primary context of device %d released too often",
			    dev);
		return CF_CU_INVALID_CONTEXT;
	}
	atomic_fetch_sub(&fc.live[LIVE_PRIMARY], 1);
	if (--p->retains == 0)
		kill(p);
	return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(release(dev));
}

/* The retains stay owed; the context itself returns with the next one. */
static int reset(CUdevice dev)
{
	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	kill(&primaries[dev]);
	return 0;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(reset(dev));
}

static int set_flags(CUdevice dev, unsigned int flags)
{
	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	if (flags > 0xff)
		return CF_CU_INVALID_VALUE;
	primaries[dev].flags = flags;
	if (primaries[dev].ctx)
		primaries[dev].ctx->flags = flags;
	return 0;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(set_flags(dev, flags));
}

static int get_state(CUdevice dev, unsigned int *flags, int *active)
{
	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	if (!flags || !active)
		return CF_CU_INVALID_VALUE;
	*flags = primaries[dev].flags;
	*active = primaries[dev].ctx != NULL;
	return 0;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
				    int *active)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(get_state(dev, flags, active));
}

void fc_primary_reset(void)
{
	for (int i = 0; i < FC_MAX_GPUS; i++) {
		atomic_fetch_sub(&fc.live[LIVE_PRIMARY], primaries[i].retains);
		primaries[i].retains = 0;
		primaries[i].flags = 0;
		kill(&primaries[i]);
	}
}
