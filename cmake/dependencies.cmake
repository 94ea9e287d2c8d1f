# All third-party libraries. docs/dependencies.md gives the reason for each.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog 1.10 REQUIRED)
find_package(simdjson 3 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto SSL)
find_package(CURL 7.88 REQUIRED)  # headers only: src/hub opens the library at run time
set(ZLIB_USE_STATIC_LIBS ON)
find_package(ZLIB 1.2.13 REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers only
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy>=1.0.3)
pkg_check_modules(LIBEDIT REQUIRED IMPORTED_TARGET libedit>=3.1)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
add_library(utf8proc INTERFACE)
target_include_directories(utf8proc INTERFACE ${UTF8PROC_INCLUDE_DIR})
target_link_libraries(utf8proc INTERFACE ${UTF8PROC_LIBRARY})
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.40)
if(QUIRE_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # CCACHE_BASEDIR makes paths relative, so that checkouts in different folders share results.
  # CCACHE_SLOPPINESS is what ccache needs for precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()
