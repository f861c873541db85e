// SPDX-License-Identifier: Apache-2.0
/*
 * pins - imports pages into libcuda, and maps the import.
 *
 * No lock: there is one outlet, and a thread that finds it busy goes without a
 * pin.
 */
#include "core/pins.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "core/gpu.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/rm_pages.h"
#include "core/trial.h"
#include "seam/os.h"

#define MAX_GPUS 64

static _Atomic int state; /* enum cf_pins; GOOD is released after pages */
static atomic_flag busy = ATOMIC_FLAG_INIT; /* guards pages */
static struct cf_rm_pages pages = { .outlet = -1, .keeper = -1 };

enum cf_pins cf_pins_state(void)
{
	return (enum cf_pins)atomic_load_explicit(&state, memory_order_acquire);
}

static bool enter(void)
{
	return !atomic_flag_test_and_set_explicit(&busy, memory_order_acquire);
}

static void leave(void)
{
	atomic_flag_clear_explicit(&busy, memory_order_release);
}

static bool has_calls(const struct cf_cuda *cuda)
{
	return cuda && cuda->mem_create && cuda->mem_release &&
	       cuda->mem_address_reserve && cuda->mem_address_free &&
	       cuda->mem_map && cuda->mem_unmap && cuda->mem_set_access &&
	       cuda->mem_export_to_handle && cuda->mem_import_from_handle &&
	       cuda->memcpy_dtod_async;
}

/* --------------------------------------------------------------- making */

/* busy is held. The import keeps the pages pinned when ours is taken back. */
static int import_entered(const struct cf_cuda *cuda, const char *mem,
			  size_t size, CUmemGenericAllocationHandle *memory)
{
	CUresult res;
	int err = cf_rm_pages_offer(&pages, mem, size);

	if (err)
		return err;
	res = cuda->mem_import_from_handle(
		memory, (void *)(uintptr_t)pages.outlet, CF_CU_MEM_HANDLE_FD);
	cf_rm_pages_take_back(&pages);
	return cf_cuda_code(res);
}

/* A bit for that GPU, and for each in use. */
static uint64_t gpus_with(int ordinal)
{
	uint64_t gpus = (uint64_t)1 << ordinal;
	const struct cf_gpu *gpu;

	for (unsigned n = 0; (gpu = cf_gpu_at(n)); n++)
		if (gpu->ordinal < MAX_GPUS)
			gpus |= (uint64_t)1 << gpu->ordinal;
	return gpus;
}

/* For all GPUs at once, and before any of them reads it; see cf_pin_make. */
static CUresult give_access(const struct cf_cuda *cuda, struct cf_pin *pin)
{
	CUmemAccessDesc access[MAX_GPUS];
	size_t nr = 0;

	for (int i = 0; i < MAX_GPUS; i++)
		if (pin->gpus >> i & 1)
			access[nr++] = (CUmemAccessDesc){
				.location = { CF_CU_MEM_LOCATION_DEVICE, i },
				.flags = CF_CU_MEM_ACCESS_READ,
			};
	return cuda->mem_set_access(pin->gpu, pin->size, access, nr);
}

/* Maps the memory at addresses of its own; the mapping holds it. */
static CUresult place(const struct cf_cuda *cuda, struct cf_pin *pin,
		      CUmemGenericAllocationHandle memory)
{
	CUresult res = cuda->mem_address_reserve(&pin->gpu, pin->size, 0, 0, 0);

	if (res != CF_CU_SUCCESS) {
		pin->gpu = 0;
		return res;
	}
	res = cuda->mem_map(pin->gpu, pin->size, 0, memory, 0);
	if (res != CF_CU_SUCCESS) {
		cuda->mem_address_free(pin->gpu, pin->size);
		pin->gpu = 0;
		return res;
	}
	res = give_access(cuda, pin);
	if (res != CF_CU_SUCCESS)
		(void)cf_pin_end(pin);
	return res;
}

/* busy is held; the pin has its size. */
static int make_entered(struct cf_pin *pin, const char *mem, int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_entered();
	CUmemGenericAllocationHandle memory;
	CUresult res;
	int err = import_entered(cuda, mem, pin->size, &memory);

	if (err)
		return err;
	pin->gpus = gpus_with(ordinal);
	res = place(cuda, pin, memory);
	cuda->mem_release(memory);
	return cf_cuda_code(res);
}

int cf_pin_make(struct cf_pin *pin, const char *mem, size_t size, int ordinal)
{
	int err;

	*pin = (struct cf_pin){ .size = size };
	if (!enter())
		return -EBUSY;
	err = cf_pins_state() == CF_PINS_GOOD ?
		      make_entered(pin, mem, ordinal) :
		      -ENOTSUP;
	leave();
	return err;
}

bool cf_pin_is_reached(const struct cf_pin *pin, int ordinal)
{
	return ordinal < MAX_GPUS && pin->gpus >> ordinal & 1;
}

bool cf_pin_end(struct cf_pin *pin)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	if (!pin->gpu)
		return true;
	if (!cuda || cuda->mem_unmap(pin->gpu, pin->size) != CF_CU_SUCCESS)
		return false;
	cuda->mem_address_free(pin->gpu, pin->size);
	*pin = (struct cf_pin){ 0 };
	return true;
}

/* -------------------------------------------------------------- the trial */

/* Our exports must look like libcuda's, so one of its own is the model. */
static int open_pages(const struct cf_cuda *cuda, int ordinal)
{
	const CUmemAllocationProp prop = {
		.type = CF_CU_MEM_ALLOCATION_PINNED,
		.requestedHandleTypes = CF_CU_MEM_HANDLE_FD,
		.location = { CF_CU_MEM_LOCATION_DEVICE, ordinal },
	};
	CUmemGenericAllocationHandle memory;
	char address[24];
	CUdevice dev;
	int fd, err = -ENOTSUP;
	CUresult res;

	if (cuda->device_get(&dev, ordinal) != CF_CU_SUCCESS ||
	    cuda->device_get_pci_bus_id(address, sizeof(address), dev) !=
		    CF_CU_SUCCESS)
		return err;
	res = cuda->mem_create(&memory, CF_PIN_GRANULE, &prop, 0);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	res = cuda->mem_export_to_handle(&fd, memory, CF_CU_MEM_HANDLE_FD, 0);
	if (res == CF_CU_SUCCESS) {
		err = cf_rm_pages_make(&pages, fd, address);
		cf_os->close(fd);
	}
	cuda->mem_release(memory);
	return err;
}

/* Whether the GPU reads what the CPU writes. */
static int compare(const struct cf_cuda *cuda, const struct cf_pin *pin,
		   char *mem, CUstream stream)
{
	static const size_t ats[] = { 0, CF_PIN_GRANULE / 2,
				      CF_PIN_GRANULE - CF_TRIAL_CHUNK };
	uint64_t got[CF_TRIAL_WORDS];
	CUresult res;

	for (int i = 0; i < 3; i++) {
		cf_trial_pattern((uint64_t *)(mem + ats[i]), ats[i],
				 (uintptr_t)mem);
		memset(got, 0, sizeof(got));
		res = cuda->memcpy_dtoh_async(got, pin->gpu + ats[i],
					      sizeof(got), stream);
		if (res == CF_CU_SUCCESS)
			res = cf_lane_settle_stream(cuda, stream);
		if (res != CF_CU_SUCCESS)
			return CF_ECUDA(res);
		if (memcmp(got, mem + ats[i], sizeof(got)))
			return -EILSEQ;
	}
	return 0;
}

/* busy is held. */
static int try_with(const struct cf_cuda *cuda, char *mem, int ordinal,
		    CUstream stream)
{
	struct cf_pin pin = { .size = CF_PIN_GRANULE };
	int err = open_pages(cuda, ordinal);

	if (err)
		return err;
	memset(mem, 0, CF_PIN_GRANULE); /* else all may be the zero page */
	err = make_entered(&pin, mem, ordinal);
	if (!err)
		err = compare(cuda, &pin, mem, stream);
	return cf_pin_end(&pin) ? err : -EBUSY;
}

static int try_entered(int ordinal, CUstream stream)
{
	const struct cf_cuda *cuda = cf_cuda_entered();
	char *mem;
	int err;

	if (!has_calls(cuda) || ordinal >= MAX_GPUS)
		return -ENOTSUP;
	mem = cf_os->map_anon(CF_PIN_GRANULE);
	if (!mem)
		return -ENOMEM;
	err = try_with(cuda, mem, ordinal, stream);
	if (err != -EBUSY) /* else libcuda still has it mapped */
		cf_os->unmap(mem, CF_PIN_GRANULE);
	return err;
}

void cf_pins_try(int ordinal, CUstream stream)
{
	int err;

	if (cf_pins_state() != CF_PINS_UNTRIED || !enter())
		return;
	if (cf_pins_state() == CF_PINS_UNTRIED) {
		err = try_entered(ordinal, stream);
		if (err)
			cf_rm_pages_end(&pages);
		cf_log(CF_LOG_INFO, "pins gpu %d: %s, code %d", ordinal,
		       err ? "there are none" : "by the kernel driver", err);
		atomic_store_explicit(&state, err ? CF_PINS_NONE : CF_PINS_GOOD,
				      memory_order_release);
	}
	leave();
}

void cf_pins_close(void)
{
	if (cf_pins_state() == CF_PINS_GOOD)
		cf_rm_pages_end(&pages);
	atomic_store_explicit(&state, CF_PINS_UNTRIED, memory_order_release);
}

/* The client's descriptors are shared with the parent, which ends them. */
void cf_pins_fork_child(void)
{
	atomic_flag_clear(&busy);
	atomic_store_explicit(&state, CF_PINS_NONE, memory_order_release);
}
