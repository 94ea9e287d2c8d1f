# Source this file: configure [-D…] configures build/ for the release preset, with the CMake
# arguments given. A new folder becomes a unity build, which is the fastest full build; an existing one
# stays what it is. From the environment: QUIRE_CUDA=ON, OFF or AUTO (where nvcc is found), and
# QUIRE_CUDA_ARCHITECTURES=90a-real for one kind of GPU. Later calls keep both until they are given again.
configure() {
  local unity=
  [[ -e build/CMakeCache.txt ]] || unity=-DQUIRE_UNITY=ON
  cmake --preset release $unity ${QUIRE_CUDA:+-DQUIRE_CUDA="$QUIRE_CUDA"} \
    ${QUIRE_CUDA_ARCHITECTURES:+-DQUIRE_CUDA_ARCHITECTURES="$QUIRE_CUDA_ARCHITECTURES"} "$@"
}
