#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The public headers compile alone: as strict C and C++, with and without
# cuda.h, with every compiler that is here. Usage: headers.sh INCLUDE_DIR
set -euo pipefail

include=${1:?usage: headers.sh INCLUDE_DIR}
flags=(-pedantic -Wall -Wextra -Werror -Wshadow -fsyntax-only "-I$include")
failed=0
done_nr=0

# With cuda.h in sight the header must really have taken it.
source='#include <cufile.h>
#if defined(CUFILE_EXPECT_CUDA_H) != defined(CUFILE_HAVE_CUDA_H)
#error "cufile.h and cuda.h"
#endif'
ours='#include <opencufile.h>
extern ocf_explain_t explain;'

# Tags are in the mangled names of C++ libraries, and programs write them out.
tags='#include <cufile.h>
size_t tags_are_nvidias(struct CUfileDescr_t *descr,
	enum CUFileSizeTConfigParameter_t number,
	enum CUFileBoolConfigParameter_t truth,
	enum CUFileStringConfigParameter_t text,
	enum CUFileArrayConfigParameter_t array);
size_t tags_are_nvidias(CUfileDescr_t *descr,
	CUFileSizeTConfigParameter_t number, CUFileBoolConfigParameter_t truth,
	CUFileStringConfigParameter_t text, CUFileArrayConfigParameter_t array)
{
	return sizeof(*descr) + sizeof(number) + sizeof(truth) + sizeof(text) +
	       sizeof(array);
}'

# C++ makes no enum of a number by itself: the masks need the type of the
# calls, which is too narrow for the last of them.
masks='#include <cufile.h>
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wconversion"
#endif
CUfileError_t masks_are_arguments(void);
CUfileError_t masks_are_arguments(void)
{
	CUfileP2PFlags_t mask = CU_FILE_P2P_FLAG_C2C;

	if (mask == CU_FILE_P2P_FLAG_NVFS || mask == CU_FILE_P2P_FLAG_DMABUF)
		return cuFileDriverGetP2PFlags(CU_FILE_NVME_SUPPORTED, &mask);
	return cuFileDriverSetP2PFlags(CU_FILE_NVME_SUPPORTED,
				       CU_FILE_P2P_FLAG_PCI_P2PDMA);
}'

# Code as the reference of 2022 has it, beside code of today.
legacy='#include <cufile_legacy.h>
CUfileError_t then_and_now(CUFileHandle_t fh, void *base, size_t *size,
	CUStream stream, CUfileIOParams_t *io, cuFileDrvProps_t *props);
CUfileError_t then_and_now(CUFileHandle_t fh, void *base, size_t *size,
	CUStream stream, CUfileIOParams_t *io, cuFileDrvProps_t *props)
{
	static int bytes;
	static ssize_t n;
	static off_t at;
	CUfileBatchHandle_t batch;

	io->opcode = CU_FILE_READ;
	cuFileGetDriverProperties(props);
	cuFileDriverSetProperties(props);
	cudaFileReadAsync(fh, base, size, 0, at, &bytes, stream);
	cudaFileWriteAsync(fh, base, size, at, 0, &bytes, stream);
	cuFileReadAsync(fh, base, size, 0, 0, &bytes, stream);
	cuFileWriteAsync(fh, base, size, at, at, &bytes, stream);
	cuFileReadAsync(fh, base, size, &at, &at, &n, stream);
	cuFileWriteAsync(fh, base, size, &at, &at, &n, stream);
	cuFileBatchIOSubmit(NULL, 1, io, 0);
	cuFileBatchIOSubmit(&batch, 1, io, 0, stream);
	return cudaFileBatchIOSubmit(&batch, 1, io, 0, stream);
}'

has_cuda() {
	echo '#include <cuda.h>' | "$1" -fsyntax-only -x c - 2>/dev/null
}

compile() {
	local compiler=$1 language=$2 standard=$3
	shift 3
	done_nr=$((done_nr + 1))
	for text in "$source" "$ours" "$tags" "$masks" "$legacy"; do
		if ! echo "$text" | "$compiler" -x "$language" "-std=$standard" \
			"${flags[@]}" "$@" -; then
			echo "failed: $compiler -std=$standard $*"
			failed=1
		fi
	done
}

for compiler in gcc clang; do
	command -v "$compiler" >/dev/null || continue
	for cuda in -DCUFILE_NO_CUDA_H -DCUFILE_EXPECT_CUDA_H; do
		if [ "$cuda" = -DCUFILE_EXPECT_CUDA_H ] && ! has_cuda "$compiler"; then
			echo "$compiler finds no cuda.h: compiled without it only"
			continue
		fi
		compile "$compiler" c c11 "$cuda"
		compile "$compiler" c c17 "$cuda"
		echo '' | "$compiler" -x c++ -std=c++17 -fsyntax-only - 2>/dev/null || continue
		compile "$compiler" c++ c++17 "$cuda" -Wold-style-cast -Wconversion
	done
done
[ "$done_nr" -gt 0 ] || { echo "no compiler found"; exit 1; }
echo "$done_nr compilations"
exit "$failed"
