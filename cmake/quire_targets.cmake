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
# GCC 12 wrongly reports overlapping copies in std::string (GCC bug 105329), and prints a note about
# the ABI of GCC 4.6 for every function that takes a tensor map by value.
target_compile_options(quire_flags INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-psabi>>
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-psabi>>)
# In a unity build, Clang warns of a local name that another source has for a private constant.
target_compile_options(quire_flags INTERFACE
  $<BUILD_INTERFACE:$<$<AND:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<COMPILE_LANG_AND_ID:CXX,Clang>>:-Wno-shadow>>)
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

# GCC collects garbage whenever a unit needs another 128 MiB, which costs a tenth of a large unit's time.
# From 1 GiB on, a unit's peak is 1.3 GiB: have that much memory for each core.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1048576>)

# GCC 12 gives these warnings for correct sources: of copies in std::string, with precompiled headers
# (GCC bug 105545) and with -O1; and with -O1 of uninitialized variables too.
set(quire_no_copy_warnings -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
set(quire_no_warnings_at_o1 -Wno-maybe-uninitialized ${quire_no_copy_warnings})

# Lowers the level of a target's sources from a release build's -O3. Presets for sanitizers and
# debuggers state a level of their own, which stays.
function(quire_optimize target level)
  if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
    target_compile_options(${target} PRIVATE
      $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:${level}>)
    if(level STREQUAL "-O1")
      target_compile_options(${target} PRIVATE
        "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU>>:${quire_no_warnings_at_o1}>")
    endif()
  endif()
endfunction()

# Lets a target's sources start from the precompiled standard library, fmt and simdjson.
# Sources with compile options of their own (kernels for one instruction set) do without. GCC forgets
# that precompiled headers are the system's, and then reports wrong copies in std::string: these
# warnings are left to the build without precompiled headers. With -fpch-preprocess, ccache keeps
# objects that were made with one.
function(quire_precompile_headers target)
  if(QUIRE_PCH)
    target_link_libraries(${target} PRIVATE fmt::fmt simdjson::simdjson)
    target_precompile_headers(${target} REUSE_FROM quire_precompiled)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess;${quire_no_copy_warnings}>")
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

# With QUIRE_UNITY, compiles up to `count` C++ sources of a target at once. A unit's main file includes
# the sources, so that GCC takes their private types for a header's.
function(quire_unite target count)
  if(QUIRE_UNITY)
    get_target_property(kernels ${target} SOURCES)
    list(FILTER kernels INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Compiles a source of the current folder again when one of the files that it embeds changes. It is
# compiled alone: a united source would not know of these files.
#   quire_embeds_files(SOURCE FILE…)
function(quire_embeds_files source)
  set_source_files_properties(${source} PROPERTIES
    OBJECT_DEPENDS "${ARGN}" SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# With QUIRE_UNITY, compiles these CUDA sources of a library at once: the time of a small kernel's source
# is mostly that of its headers. CMake 3.25 unites C++ only, so a generated source includes the others.
# They share private names: an anonymous namespace per source would not keep them apart.
function(quire_unite_kernels name)
  if(QUIRE_UNITY)
    set(text)
    list(GET ARGN 0 first)
    get_filename_component(unit ${first} NAME_WE)
    foreach(source ${ARGN})
      set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(united ${CMAKE_CURRENT_BINARY_DIR}/united/${unit}_and_others.cu)
    file(CONFIGURE OUTPUT ${united} CONTENT "${text}" @ONLY)
    target_sources(quire_${name} PRIVATE ${united})
  endif()
endfunction()

# quire_library(kv SOURCES block_pool.cc … DEPS base … [NO_UNITY] [HOT | COLD]): builds this folder's
# library quire_kv.
#   NO_UNITY  its sources cannot share a translation unit
#   HOT       it has loops over numbers or over all bytes of a text: -O3 instead of -O2
#   COLD      it works once per command or file: -O1, which takes a third less time to compile
function(quire_library name)
  cmake_parse_arguments(ARG "NO_UNITY;HOT;COLD" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_library(quire_${name} STATIC ${ARG_SOURCES})
  if(ARG_COLD)
    quire_optimize(quire_${name} -O1)
  elseif(NOT ARG_HOT)
    quire_optimize(quire_${name} -O2)
  endif()
  list(TRANSFORM ARG_DEPS PREPEND quire_ OUTPUT_VARIABLE libraries)
  target_link_libraries(quire_${name} PUBLIC quire_flags ${libraries} PRIVATE ${ARG_LIBS})
  if(NOT ARG_NO_UNITY)
    quire_unite(quire_${name} 16)
  endif()
  quire_precompile_headers(quire_${name})
  set_property(GLOBAL APPEND PROPERTY QUIRE_LIBRARIES quire_${name})
endfunction()

# The options of test sources. They are optimized little, because they take longer to compile than to
# run. The libraries under test, and those in tests/support, are optimized as always.
function(quire_compile_as_test target)
  quire_optimize(${target} -O1)
  target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest)
endfunction()

# quire_test(block_pool_test SOURCES … [ALONE …] DEPS kv … [LABELS tsan …] [TIMEOUT 60] [RUNS_QUIRE]
#            [NIGHTLY Soak.* …] [NOT_SANITIZED Slow.* …]): builds a GoogleTest program and adds it as a
# CTest entry, which is skipped if all of its tests were skipped.
#   ALONE          sources that define names of others, so that they cannot share a translation unit
#   RUNS_QUIRE     the tests run the binary, whose path is in QUIRE_BINARY
#   NIGHTLY        tests that match these patterns run in an entry of their own, NAME_nightly, with
#                  the label nightly; with NIGHTLY * there is no other
#   NOT_SANITIZED  tests that a build with a sanitizer leaves out
# Labels with a meaning:
#   nightly        scripts/nightly.sh runs it, and CI if its folder changed
#   cuda           for GPUs; CI builds it without one
#   e2e            runs the binary or the tree as a user does; ASan's full run and the build without
#                  unity and precompiled headers leave it out
#   clients, routers  needs packages from PyPI: only with QUIRE_CLIENT_TESTS
#   asan, tsan     CI runs it under this sanitizer; nightly.sh runs all
#   threaded       has threads, so that nightly.sh runs it under ThreadSanitizer; tsan implies it
#   release_only   left out of builds with a sanitizer: bounds CPU time or memory, or decodes for so
#                  long that a sanitizer would take a quarter of an hour
function(quire_test name)
  cmake_parse_arguments(ARG "RUNS_QUIRE" "TIMEOUT"
                        "SOURCES;ALONE;DEPS;LIBS;LABELS;ARGS;NIGHTLY;NOT_SANITIZED" ${ARGN})
  if(QUIRE_SANITIZE AND "release_only" IN_LIST ARG_LABELS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(QUIRE_SANITIZE)  # many times slower, and CI's machine may have other work
    math(EXPR ARG_TIMEOUT "5 * ${ARG_TIMEOUT}")
  else()
    set(ARG_NOT_SANITIZED)
  endif()
  if("tsan" IN_LIST ARG_LABELS)
    list(APPEND ARG_LABELS threaded)
  endif()
  add_executable(${name} ${ARG_SOURCES} ${ARG_ALONE})
  list(TRANSFORM ARG_DEPS PREPEND quire_ OUTPUT_VARIABLE libraries)
  target_link_libraries(${name} PRIVATE ${libraries} quire_test_support ${ARG_LIBS}
                        quire_test_main)
  quire_compile_as_test(${name})
  quire_unite(${name} 8)
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(QUIRE_PCH)
    target_precompile_headers(${name} REUSE_FROM quire_test_headers)
  endif()
  if(ARG_RUNS_QUIRE)
    add_dependencies(${name} quire)
  endif()
  foreach(label asan cuda tsan threaded)
    if(label IN_LIST ARG_LABELS)
      set_property(GLOBAL APPEND PROPERTY QUIRE_${label}_TESTS ${name})
    endif()
  endforeach()

  # The filter of an entry: POSITIVE-NEGATIVE, each a list of patterns with colons.
  list(JOIN ARG_NIGHTLY ":" nightly)
  list(JOIN ARG_NOT_SANITIZED ":" omitted)
  if(NOT nightly STREQUAL "*")
    set(filter_of_${name} "*-${nightly}:${omitted}")
    set(entries ${name})
  endif()
  # Patterns that a sanitizer leaves out make no entry of their own.
  list(JOIN ARG_NOT_SANITIZED "|" omitted_pattern)
  string(REPLACE "*" ".*" omitted_pattern "${omitted_pattern}")
  set(kept ${ARG_NIGHTLY})
  if(omitted_pattern)
    list(FILTER kept EXCLUDE REGEX "^(${omitted_pattern})$")
  endif()
  if(kept)
    set(filter_of_${name}_nightly "${nightly}-${omitted}")
    list(APPEND entries ${name}_nightly)
  endif()
  foreach(entry ${entries})
    add_test(NAME ${entry} COMMAND ${name} ${ARG_ARGS})
    set(labels ${ARG_LABELS})
    if(entry STREQUAL "${name}_nightly")
      list(REMOVE_ITEM labels asan tsan)
      list(APPEND labels nightly)
    endif()
    set(environment "QUIRE_SOURCE_DIR=${CMAKE_SOURCE_DIR}" "GTEST_FILTER=${filter_of_${entry}}")
    if(ARG_RUNS_QUIRE)
      list(APPEND environment "QUIRE_BINARY=$<TARGET_FILE:quire>")
    endif()
    # COST: CTest starts the longest entries first.
    set_tests_properties(${entry} PROPERTIES TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT}
                         LABELS "${labels}" ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77)
  endforeach()
endfunction()

# quire_fuzzer(jinja SOURCES jinja_fuzz.cc DEPS tokenizer [NIGHTLY]): builds the fuzzer jinja_fuzz.
# CI leaves out those of NIGHTLY unless fuzz/ changed (grammar also: unless a grammar's code changed),
# because they link the engine or XGrammar.
function(quire_fuzzer name)
  cmake_parse_arguments(ARG "NIGHTLY" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_fuzz ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND quire_ OUTPUT_VARIABLE libraries)
  target_link_libraries(${name}_fuzz PRIVATE ${libraries})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  set_property(GLOBAL APPEND PROPERTY QUIRE_FUZZERS ${name}_fuzz)
  if(NOT ARG_NIGHTLY)
    set_property(GLOBAL APPEND PROPERTY QUIRE_QUICK_FUZZERS ${name}_fuzz)
  endif()
endfunction()

# Exports the lists of targets that scripts need. To be called after all targets are declared.
function(quire_summarize_targets)
  foreach(label asan cuda tsan threaded)
    get_property(tests GLOBAL PROPERTY QUIRE_${label}_TESTS)
    add_custom_target(${label}_tests)
    if(tests)
      add_dependencies(${label}_tests ${tests})
    endif()
  endforeach()
  foreach(kind "" QUICK_)
    get_property(fuzzers GLOBAL PROPERTY QUIRE_${kind}FUZZERS)
    list(JOIN fuzzers "\n" lines)
    string(TOLOWER ${kind}fuzzers.txt file)
    file(WRITE ${CMAKE_BINARY_DIR}/${file} "${lines}\n")
  endforeach()
endfunction()
