# Installs the built tree, builds examples/ against it as a separate project, and runs the example.
file(REMOVE_RECURSE ${WORK_DIR})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/installed)
# No installed file may refer to the prefix of the installation, because packages are moved.
file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/prefix)
run(${WORK_DIR}/prefix/bin/quire --version)

run(${CMAKE_COMMAND} -S ${EXAMPLES_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
# CMake must not find another Quire on this machine.
load_cache(${WORK_DIR}/build READ_WITH_PREFIX found_ Quire_DIR)
cmake_path(IS_PREFIX WORK_DIR ${found_Quire_DIR} is_ours)
if(NOT is_ours)
  message(FATAL_ERROR "find_package found ${found_Quire_DIR}")
endif()
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)

execute_process(COMMAND ${WORK_DIR}/build/example_stream OUTPUT_VARIABLE answer
                COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "${answer}")
if(NOT answer MATCHES "#### 190")  # 28 + 84 + 78
  message(FATAL_ERROR "example_stream did not solve its problem")
endif()
