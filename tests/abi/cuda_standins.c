// SPDX-License-Identifier: Apache-2.0
/* cuda_standins - measures our stand-in types; see test_cuda_abi.c. */
#ifndef CUFILE_NO_CUDA_H
#define CUFILE_NO_CUDA_H
#endif
#include "seam/cuda_abi.h"

#include "cuda_layout.h"

const struct measure standin_types[] = { MEASURES };
