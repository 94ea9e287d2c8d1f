# Finds CUDA, unless QUIRE_CUDA is OFF. Sets QUIRE_HAS_CUDA and provides CUDA::cudart_static for
# src/cuda. Large libraries (cuBLASLt, cuDNN) are opened at run time, so the binary also starts
# without them.
set(QUIRE_CUDA AUTO CACHE STRING "The CUDA engine: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE QUIRE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(QUIRE_HAS_CUDA OFF)

if(NOT QUIRE_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(QUIRE_HAS_CUDA ON)
  elseif(QUIRE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "QUIRE_CUDA=ON, but nvcc was not found; put the CUDA toolkit's bin folder "
                        "on the PATH, or set CUDACXX, or build with -DQUIRE_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA engine: ${QUIRE_HAS_CUDA} (QUIRE_CUDA=${QUIRE_CUDA})")

# Sets `result` to the architectures of this machine's GPUs, or to an empty list if it has none that
# Quire is tested on. Ada (8.9) runs the code for Ampere (8.0), and so does the rest of 8.x.
function(quire_find_gpu result)
  set(architectures)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE lines ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    if(lines MATCHES "8\\.[0-9]")
      list(APPEND architectures 80-real)
    endif()
    if(lines MATCHES "9\\.0")
      list(APPEND architectures 90a-real)
    endif()
  endif()
  set(${result} ${architectures} PARENT_SCOPE)
endfunction()

if(QUIRE_HAS_CUDA)
  # Machine code, so that the driver compiles nothing: for this machine's GPU if it has one, which
  # halves the build time, otherwise for Ampere (which Ada also runs) and Hopper.
  if(NOT DEFINED QUIRE_CUDA_ARCHITECTURES)
    quire_find_gpu(architectures)
    if(NOT architectures)
      set(architectures 80-real 90a-real)
    endif()
    set(QUIRE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "Of kernels that run on any GPU")
  endif()
  message(STATUS "CUDA architectures: ${QUIRE_CUDA_ARCHITECTURES}")
  set(CMAKE_CUDA_ARCHITECTURES ${QUIRE_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  # CMake 3.25.1 does not know that nvcc supports C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  # nvcc's -O is that of the host's code, which only launches kernels here, and of which GCC's -O3 takes
  # up to a fifth of a kernel's compile time. Device code is always optimized fully. (With
  # -Xcompiler=-O1, nvcc's own -O3 would follow and win.)
  string(REPLACE "-O3" "-O1" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  find_package(CUDAToolkit 12.4 REQUIRED)
  include(cuda_dependencies)
endif()
