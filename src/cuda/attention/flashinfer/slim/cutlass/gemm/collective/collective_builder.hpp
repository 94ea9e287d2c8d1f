// Replaces CUTLASS's header of this name, which includes the builders of every architecture.
// FlashInfer's FA3 only needs the layouts of shared memory; this saves a sixth of the compile time.
#pragma once

#include <cute/tensor.hpp>
#include <cutlass/gemm/collective/builders/sm90_common.inl>
