// In place of CUTLASS's header of this name, which brings the builders of every architecture: of
// them, FlashInfer's FA3 needs the layouts of shared memory. This saves a sixth of the compile
// time.
#pragma once

#include <cute/tensor.hpp>
#include <cutlass/gemm/collective/builders/sm90_common.inl>
