# Builds the sources that scripts/fetch_deps.sh downloads as the static library `xgrammar`. XGrammar
# parses untrusted text and cannot be interrupted, so it is compiled from a copy that is patched:
# its work is charged to a budget (src/grammar/work_budget.h), and a grammar that takes too long ends
# with an exception. Each patch in patches/xgrammar begins with the reason for it.
set(QUIRE_XGRAMMAR_DIR ${CMAKE_SOURCE_DIR}/.deps/xgrammar)

include(patches)
include(quire_fetched)
quire_require_fetched(xgrammar cmake/xgrammar_pin.txt scripts/fetch_deps.sh "")

set(xgrammar_patches schema_values white_space property_names patterns dates lengths characters
                     memory time counts attributes)
list(TRANSFORM xgrammar_patches REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/patches/xgrammar/\\1.patch")
set(xgrammar_dir ${CMAKE_BINARY_DIR}/xgrammar)
quire_apply_patches(SOURCE_DIR ${QUIRE_XGRAMMAR_DIR}/cpp OUTPUT_DIR ${xgrammar_dir}
                    PATCHES ${xgrammar_patches})

set(xgrammar_sources
  compiled_grammar.cc config.cc earley_parser.cc fsm.cc fsm_builder.cc grammar.cc
  grammar_builder.cc grammar_compiler.cc grammar_functor.cc grammar_matcher.cc grammar_parser.cc
  grammar_printer.cc json_schema_converter.cc regex_converter.cc suffix_automata.cc testing.cc
  tokenizer_info.cc converter_ext/cohere.cc converter_ext/deepseek.cc converter_ext/glm.cc
  converter_ext/kimi_k3.cc converter_ext/minimax.cc converter_ext/minimax_m3.cc
  converter_ext/qwen.cc support/recursion_guard.cc)
list(TRANSFORM xgrammar_sources PREPEND ${xgrammar_dir}/)

add_library(xgrammar STATIC ${xgrammar_sources}
            ${CMAKE_SOURCE_DIR}/src/grammar/xgrammar_stubs.cc)
target_include_directories(xgrammar SYSTEM
  PUBLIC ${QUIRE_XGRAMMAR_DIR}/include ${QUIRE_XGRAMMAR_DIR}/3rdparty/dlpack/include
  PRIVATE ${xgrammar_dir} ${xgrammar_dir}/converter_ext ${xgrammar_dir}/support
          ${QUIRE_XGRAMMAR_DIR}/3rdparty/picojson)
# Sends messages to src/grammar/compile_spec.cc instead of standard error.
target_compile_definitions(xgrammar PRIVATE
  XGRAMMAR_LOG_CUSTOMIZE=1 XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0)
# Builds sources together, because most of their build time is spent on the same headers.
foreach(source ${xgrammar_sources})
  if(source MATCHES "/(compiled_grammar|earley_parser|grammar_compiler|grammar_matcher|tokenizer_info)\\.cc$")
    set(group step)
  elseif(source MATCHES "/(fsm.*|grammar|grammar_functor|grammar_parser|grammar_builder)\\.cc$")
    set(group grammar)
  else()
    set(group small)
  endif()
  set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
endforeach()
# It works once per schema, and takes long to optimize.
set_source_files_properties(${xgrammar_dir}/json_schema_converter.cc PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")
set_target_properties(xgrammar PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP CXX_STANDARD 17)
target_compile_options(xgrammar PRIVATE
  -w -ffp-contract=off -fno-omit-frame-pointer
  -include ${CMAKE_SOURCE_DIR}/src/grammar/work_budget.h)
quire_optimize(xgrammar -O2)
if(QUIRE_SANITIZE)
  target_compile_options(xgrammar PRIVATE -fsanitize=${QUIRE_SANITIZE} -fno-sanitize-recover=all)
endif()
if(QUIRE_FUZZ)
  target_compile_options(xgrammar PRIVATE -fsanitize=fuzzer-no-link)
endif()
