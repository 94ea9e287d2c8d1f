# Targets for the packages that scripts/fetch_cuda_deps.sh downloads. docs/dependencies.md gives the
# reason for each. They are system headers, so Quire's warnings do not apply to them.
set(QUIRE_CUDA_DEPS_DIR ${CMAKE_SOURCE_DIR}/.deps/cuda)

include(quire_fetched)
quire_require_fetched(cuda cmake/cuda_requirements.txt scripts/fetch_cuda_deps.sh
                      ", or build with -DQUIRE_CUDA=OFF")

function(quire_header_library name)
  add_library(${name} INTERFACE)
  target_include_directories(${name} SYSTEM INTERFACE ${ARGN})
endfunction()

quire_header_library(cutlass_headers ${QUIRE_CUDA_DEPS_DIR}/cutlass/include
                     ${QUIRE_CUDA_DEPS_DIR}/cutlass/tools/util/include)
# FlashInfer needs a newer CCCL than the CUDA toolkit has, so CCCL must be found first.
quire_header_library(flashinfer_headers ${QUIRE_CUDA_DEPS_DIR}/flashinfer/include
                     ${QUIRE_CUDA_DEPS_DIR}/cccl/libcudacxx/include
                     ${QUIRE_CUDA_DEPS_DIR}/cccl/cub ${QUIRE_CUDA_DEPS_DIR}/cccl/thrust)
quire_header_library(cudnn_frontend ${QUIRE_CUDA_DEPS_DIR}/cudnn_frontend/include)
# The backend that wraps XQA compiles XQA's sources, once per variant.
set(QUIRE_XQA_DIR ${QUIRE_CUDA_DEPS_DIR}/flashinfer/csrc/xqa)
