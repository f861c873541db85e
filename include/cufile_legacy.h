// SPDX-License-Identifier: Apache-2.0
/*
 * cufile_legacy.h - the names of the API reference of 2022.
 *
 * That text announced calls and spellings which no library had in the end.
 * This header makes code that was written to it compile, and do what the text
 * says, as far as the names can be told from those of today:
 *
 *   - cudaFileReadAsync and cudaFileWriteAsync; and cuFileReadAsync and
 *     cuFileWriteAsync where the result is an int: by overloading in C++, by
 *     _Generic in C11. Today's form, with a ssize_t, goes on beside them.
 *     A NULL stream makes them synchronous, as the text has it.
 *   - cudaFileBatchIOSubmit, and cuFileBatchIOSubmit with a stream as its fifth
 *     argument: they set up a batch, and today's calls take it from there. The
 *     batch is a CUfileBatchHandle_t instead of an int, entries are those of
 *     today, and ends are events: CUfileBatchHandle_t has to be written where
 *     the text has int. Its calls on an int have today's names and other
 *     arguments, and are not here.
 *   - cuFileGetDriverProperties, cuFileDriverSetProperties.
 *   - codes, states and types in their old spelling.
 *
 * It needs a library that has the calls of opencufile.h.
 */
#ifndef CUFILE_LEGACY_H
#define CUFILE_LEGACY_H

#include <errno.h>
#include <opencufile.h>
#include <stddef.h>

#ifdef __cplusplus
#define CUFILE_LEGACY_TO(type, value) static_cast<type>(value)
#else
#define CUFILE_LEGACY_TO(type, value) ((type)(value))
#endif

/* ------------------------------------------------------------- spellings */

typedef CUfileHandle_t CUFileHandle_t;
typedef CUfileDescr_t CUFileDescr_t;
typedef CUfileDrvProps_t cuFileDrvProps_t;
typedef CUfileOpcode_t CUfileBatchOpcode_t;
typedef CUstream CUStream;

#define CU_FILE_READ CUFILE_READ
#define CU_FILE_WRITE CUFILE_WRITE

#define CU_FILE_WAITING CUFILE_WAITING
#define CU_FILE_PENDING CUFILE_PENDING
#define CU_FILE_INVALID CUFILE_INVALID
#define CU_FILE_CANCELED CUFILE_CANCELED
#define CU_FILE_COMPLETE CUFILE_COMPLETE
#define CU_FILE_TIMEOUT CUFILE_TIMEOUT
#define CU_FILE_FAILED CUFILE_FAILED

#define CU_FILE_NEWFD_FAILED CU_FILE_GETNEWFD_FAILED
#define CU_FILE_ERROR_INVALID_VALUE CU_FILE_INVALID_VALUE
#define CU_FILE_DRIVER_ERROR CU_FILE_NVFS_DRIVER_ERROR
#define CU_FILE_CUDA_ERROR CU_FILE_CUDA_DRIVER_ERROR
#define CU_FILE_MEM_ALLOC_FAILED CU_FILE_NOMEM_ERROR
#define CU_FILE_EXASCALER_SUPPORTED CU_FILE_LUSTRE_SUPPORTED

#define CU_FILE_STREAM_FIXED_AND_ALIGNED \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | \
	 CU_FILE_STREAM_FIXED_FILE_SIZE | CU_FILE_STREAM_PAGE_ALIGNED_INPUTS)

/* ------------------------------------------------------------ properties */

static inline CUfileError_t cuFileGetDriverProperties(CUfileDrvProps_t *props)
{
	return cuFileDriverGetProperties(props);
}

/*
 * Sets what differs from the properties in force and has a call that sets it:
 * polling and its threshold, the largest direct IO, cache and pinned memory.
 * The first error ends it. 5022 for NULL.
 */
static inline CUfileError_t cuFileDriverSetProperties(
	const CUfileDrvProps_t *props)
{
	const unsigned int poll = 1u << CU_FILE_USE_POLL_MODE;
	CUfileError_t e = { CU_FILE_INVALID_VALUE, CUDA_SUCCESS };
	CUfileDrvProps_t now;

	if (!props)
		return e;
	e = cuFileDriverGetProperties(&now);
	if (e.err == CU_FILE_SUCCESS &&
	    (((props->nvfs.dcontrolflags ^ now.nvfs.dcontrolflags) & poll) ||
	     props->nvfs.poll_thresh_size != now.nvfs.poll_thresh_size))
		e = cuFileDriverSetPollMode(
			(props->nvfs.dcontrolflags & poll) != 0,
			props->nvfs.poll_thresh_size);
	if (e.err == CU_FILE_SUCCESS &&
	    props->nvfs.max_direct_io_size != now.nvfs.max_direct_io_size)
		e = cuFileDriverSetMaxDirectIOSize(
			props->nvfs.max_direct_io_size);
	if (e.err == CU_FILE_SUCCESS &&
	    props->max_device_cache_size != now.max_device_cache_size)
		e = cuFileDriverSetMaxCacheSize(props->max_device_cache_size);
	if (e.err == CU_FILE_SUCCESS &&
	    props->max_device_pinned_mem_size != now.max_device_pinned_mem_size)
		e = cuFileDriverSetMaxPinnedMemSize(
			props->max_device_pinned_mem_size);
	return e;
}

/* --------------------------------------------------------------- streams */

#define CUFILE_LEGACY_MOST 0x7ffff000u /* as ocf_read_async */

/* What ocf_read_async would leave for the answer of cuFileRead. */
static inline int cufile_legacy_result(ssize_t n)
{
	if (n >= 0)
		return CUFILE_LEGACY_TO(int, n);
	return n == -1 && errno > CUFILEOP_BASE_ERR ? -errno : -1;
}

static inline CUfileError_t cudaFileReadAsync(CUfileHandle_t fh,
					      void *devPtr_base, size_t *size,
					      off_t file_offset,
					      off_t devPtr_offset,
					      int *bytes_read, CUstream stream)
{
	CUfileError_t ok = { CU_FILE_SUCCESS, CUDA_SUCCESS };

	if (stream || !fh || !devPtr_base || !size || !bytes_read)
		return ocf_read_async(fh, devPtr_base, size, file_offset,
				      devPtr_offset, bytes_read, stream);
	*bytes_read = cufile_legacy_result(cuFileRead(
		fh, devPtr_base,
		*size < CUFILE_LEGACY_MOST ? *size : CUFILE_LEGACY_MOST,
		file_offset, devPtr_offset));
	return ok;
}

static inline CUfileError_t cudaFileWriteAsync(
	CUfileHandle_t fh, void *devPtr_base, size_t *size, off_t file_offset,
	off_t devPtr_offset, int *bytes_written, CUstream stream)
{
	CUfileError_t ok = { CU_FILE_SUCCESS, CUDA_SUCCESS };

	if (stream || !fh || !devPtr_base || !size || !bytes_written)
		return ocf_write_async(fh, devPtr_base, size, file_offset,
				       devPtr_offset, bytes_written, stream);
	*bytes_written = cufile_legacy_result(cuFileWrite(
		fh, devPtr_base,
		*size < CUFILE_LEGACY_MOST ? *size : CUFILE_LEGACY_MOST,
		file_offset, devPtr_offset));
	return ok;
}

/*
 * Sets up a batch for these entries and submits them in the stream's order;
 * NULL: in none. *batch is the caller's to destroy, or NULL after an error.
 */
static inline CUfileError_t cudaFileBatchIOSubmit(CUfileBatchHandle_t *batch,
						  int nr,
						  CUfileIOParams_t *iocbp,
						  unsigned int flags,
						  CUstream stream)
{
	CUfileError_t e = cuFileBatchIOSetUp(
		batch, nr > 0 ? CUFILE_LEGACY_TO(unsigned int, nr) : 0);

	if (e.err == CU_FILE_SUCCESS) {
		e = stream ? ocf_batch_submit_stream(
				     *batch, CUFILE_LEGACY_TO(unsigned int, nr),
				     iocbp, flags, stream) :
			     cuFileBatchIOSubmit(
				     *batch, CUFILE_LEGACY_TO(unsigned int, nr),
				     iocbp, flags);
		if (e.err == CU_FILE_SUCCESS)
			return e;
		cuFileBatchIODestroy(*batch);
	}
	if (batch)
		*batch = NULL;
	return e;
}

#ifdef __cplusplus

static inline CUfileError_t cuFileReadAsync(CUfileHandle_t fh,
					    void *devPtr_base, size_t *size,
					    off_t file_offset,
					    off_t devPtr_offset,
					    int *bytes_read, CUstream stream)
{
	return cudaFileReadAsync(fh, devPtr_base, size, file_offset,
				 devPtr_offset, bytes_read, stream);
}

static inline CUfileError_t cuFileWriteAsync(
	CUfileHandle_t fh, void *devPtr_base, size_t *size, off_t file_offset,
	off_t devPtr_offset, int *bytes_written, CUstream stream)
{
	return cudaFileWriteAsync(fh, devPtr_base, size, file_offset,
				  devPtr_offset, bytes_written, stream);
}

static inline CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t *batch,
						int nr, CUfileIOParams_t *iocbp,
						unsigned int flags,
						CUstream stream)
{
	return cudaFileBatchIOSubmit(batch, nr, iocbp, flags, stream);
}

#else
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L

/* The number of arguments tells the two forms apart. */
#define CUFILE_LEGACY_6TH(a, b, c, d, e, f, ...) f
#define cuFileBatchIOSubmit(...) \
	CUFILE_LEGACY_6TH(__VA_ARGS__, cudaFileBatchIOSubmit, \
			  cuFileBatchIOSubmit, 0) \
	(__VA_ARGS__)

#endif
#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L

/* The result's type tells the two forms apart. */
#define cuFileReadAsync(fh, base, size, file_off, base_off, result, stream) \
	_Generic((result), int *: cudaFileReadAsync, \
		 default: cuFileReadAsync)(fh, base, size, file_off, base_off, \
					   result, stream)
#define cuFileWriteAsync(fh, base, size, file_off, base_off, result, stream) \
	_Generic((result), int *: cudaFileWriteAsync, \
		 default: cuFileWriteAsync)(fh, base, size, file_off, \
					    base_off, result, stream)

#endif
#endif

#endif
