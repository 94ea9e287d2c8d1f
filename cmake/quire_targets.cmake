# The functions that declare all targets: one static library per folder.

add_library(quire_flags INTERFACE)
target_include_directories(quire_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
  $<INSTALL_INTERFACE:include>)
# -ffp-contract=off: the compiler must not fuse multiply-adds on its own, so that a reduction gives
# the same bits in every function into which it is inlined.
target_compile_options(quire_flags INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion;-Werror;-ffp-contract=off;-fno-omit-frame-pointer>>)
target_compile_options(quire_flags INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-Wshadow;--expt-relaxed-constexpr>>)
# GCC 12 wrongly reports overlapping and boundless copies in std::string (GCC bugs 105329 and 105545),
# and prints a note about the ABI of GCC 4.6 for every function that takes a tensor map by value.
target_compile_options(quire_flags INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-psabi>>
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-psabi>>)
if(QUIRE_SANITIZE)
  target_compile_options(quire_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=${QUIRE_SANITIZE}
                         -fno-sanitize-recover=all>)
  target_link_options(quire_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=${QUIRE_SANITIZE}>)
endif()
if(QUIRE_FUZZ)
  target_compile_options(quire_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=fuzzer-no-link>)
endif()

option(QUIRE_PCH "Precompile the headers that most sources include" ON)
option(QUIRE_UNITY "Compile several sources of a library at once: a faster full build" OFF)

# Lets a target's sources start from the precompiled standard library, fmt, simdjson and status.h.
# Sources with compile options of their own (kernels for one instruction set) do without.
function(quire_precompile_headers target)
  if(QUIRE_PCH)
    target_link_libraries(${target} PRIVATE fmt::fmt simdjson::simdjson)
    target_precompile_headers(${target} REUSE_FROM quire_precompiled)
    get_target_property(sources ${target} SOURCES)
    foreach(source ${sources})
      get_source_file_property(options ${source} COMPILE_OPTIONS)
      if(options)
        set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endif()
endfunction()

if(QUIRE_PCH)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cc CONTENT "")
  add_library(quire_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(quire_precompiled PRIVATE quire_flags fmt::fmt simdjson::simdjson)
  target_precompile_headers(quire_precompiled PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${CMAKE_SOURCE_DIR}/cmake/precompiled.h>)
endif()

# quire_library(kv SOURCES block_pool.cc … DEPS base … [NO_UNITY]): builds this folder's library
# quire_kv. NO_UNITY: its sources cannot share a translation unit.
function(quire_library name)
  cmake_parse_arguments(ARG "NO_UNITY" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_library(quire_${name} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND quire_ OUTPUT_VARIABLE libraries)
  target_link_libraries(quire_${name} PUBLIC quire_flags ${libraries} PRIVATE ${ARG_LIBS})
  if(QUIRE_UNITY AND NOT ARG_NO_UNITY)
    set_target_properties(quire_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    # A unit's main file includes the sources, so that GCC takes their private types for a header's.
    target_compile_options(quire_${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
  quire_precompile_headers(quire_${name})
  set_property(GLOBAL APPEND PROPERTY QUIRE_LIBRARIES quire_${name})
endfunction()

# quire_test(block_pool_test SOURCES … DEPS kv … [LABELS engine] [TIMEOUT 60]): builds a GoogleTest
# program and adds it as one CTest entry, which is skipped if all of its tests were skipped. A build
# with a sanitizer leaves out the tests labelled release_only: they bound CPU time or memory, or
# decode for so long that a sanitizer would take a quarter of an hour.
function(quire_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LIBS;LABELS;ARGS" ${ARGN})
  if(QUIRE_SANITIZE AND "release_only" IN_LIST ARG_LABELS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(QUIRE_SANITIZE)  # many times slower, and CI's machine may have other work
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND quire_ OUTPUT_VARIABLE libraries)
  target_link_libraries(${name} PRIVATE ${libraries} quire_test_support ${ARG_LIBS}
                        quire_test_main GTest::gmock GTest::gtest)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       SKIP_RETURN_CODE 77
                       ENVIRONMENT "QUIRE_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
  if("threaded" IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY QUIRE_THREADED_TESTS ${name})
  endif()
endfunction()

# quire_fuzzer(jinja SOURCES jinja_fuzz.cc DEPS tokenizer): builds the fuzzer jinja_fuzz.
function(quire_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_fuzz ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND quire_ OUTPUT_VARIABLE libraries)
  target_link_libraries(${name}_fuzz PRIVATE ${libraries})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  set_property(GLOBAL APPEND PROPERTY QUIRE_FUZZERS ${name}_fuzz)
endfunction()

# Exports the lists of targets that scripts need. To be called after all targets are declared.
function(quire_summarize_targets)
  get_property(threaded GLOBAL PROPERTY QUIRE_THREADED_TESTS)
  add_custom_target(threaded_tests)
  if(threaded)
    add_dependencies(threaded_tests ${threaded})
  endif()
  get_property(fuzzers GLOBAL PROPERTY QUIRE_FUZZERS)
  list(JOIN fuzzers "\n" lines)
  file(WRITE ${CMAKE_BINARY_DIR}/fuzzers.txt "${lines}\n")
endfunction()
