# The packages of scripts/package.sh. Their contents by CMake's components:
#   runtime    the binary, shell completions and documents
#   libraries  copies of the shared libraries, for systems that have others: in the tarball and the
#              wheel, not in the .deb, which depends on the distribution's packages
#   service    the systemd unit: in the .deb
# The binary finds the copies in ../lib/quire. With RPATH instead of RUNPATH, they also find each
# other there.
if(NOT TARGET quire)
  return()
endif()
set_target_properties(quire PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/quire")
target_link_options(quire PRIVATE LINKER:--disable-new-dtags)
install(TARGETS quire RUNTIME_DEPENDENCY_SET quire_libraries COMPONENT runtime)
install(RUNTIME_DEPENDENCY_SET quire_libraries
        # A C library works only with its own system's dynamic loader, and libraries of the system
        # that are opened at run time may need a later C++ run time than this machine's.
        PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so"
        LIBRARY DESTINATION lib/quire COMPONENT libraries EXCLUDE_FROM_ALL)

foreach(shell_and_file "bash=bash-completion/completions/quire" "zsh=zsh/site-functions/_quire"
                       "fish=fish/vendor_completions.d/quire.fish")
  string(REGEX MATCH "^([a-z]+)=(.*)$" _ ${shell_and_file})
  install(CODE "
    set(file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/${CMAKE_MATCH_2}\")
    get_filename_component(folder \${file} DIRECTORY)
    file(MAKE_DIRECTORY \${folder})
    execute_process(COMMAND $<TARGET_FILE:quire> completion ${CMAKE_MATCH_1} OUTPUT_FILE \${file}
                    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT runtime)
endforeach()
install(FILES LICENSE CHANGELOG.md SECURITY.md docs/dependencies.md
        DESTINATION share/doc/quire COMPONENT runtime)
# The licences of the parts that are compiled in.
set(parts xgrammar libzmq katex)
if(QUIRE_HAS_CUDA)
  list(APPEND parts cuda)
endif()
list(TRANSFORM parts REPLACE "(.+)" ".deps/\\1/LICENSE*;.deps/\\1/NOTICE*;.deps/\\1/COPYING*"
     OUTPUT_VARIABLE patterns)
file(GLOB_RECURSE licences RELATIVE ${CMAKE_SOURCE_DIR}/.deps ${patterns})
foreach(file ${licences})
  string(REPLACE "/" "-" name ${file})
  install(FILES .deps/${file} DESTINATION share/doc/quire/licences RENAME ${name}
          COMPONENT runtime)
endforeach()
# The licences of the shared libraries, from the packages that they were copied from.
install(CODE "
  file(GLOB copies \${CMAKE_INSTALL_PREFIX}/lib/quire/*.so*)
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/quire/licences\")
  foreach(copy \${copies})
    get_filename_component(name \${copy} NAME)
    execute_process(COMMAND dpkg-query --search \"*/x86_64-linux-gnu/\${name}\" OUTPUT_VARIABLE owner ERROR_QUIET)
    if(owner MATCHES \"^([^:]+):\" AND EXISTS /usr/share/doc/\${CMAKE_MATCH_1}/copyright)
      file(COPY_FILE /usr/share/doc/\${CMAKE_MATCH_1}/copyright
           \${folder}/\${CMAKE_MATCH_1}.copyright)
    endif()
  endforeach()" COMPONENT libraries EXCLUDE_FROM_ALL)

file(READ deploy/quire.service unit)
string(REPLACE "/usr/local/bin/quire" "/usr/bin/quire" unit "${unit}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/quire.service CONTENT "${unit}" @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/quire.service DESTINATION lib/systemd/system
        COMPONENT service EXCLUDE_FROM_ALL)

# Both variants install the same files, so only one of them can be installed.
set(CPACK_PACKAGE_NAME quire)
set(other quire-cuda)
if(QUIRE_HAS_CUDA)
  set(CPACK_PACKAGE_NAME quire-cuda)
  set(other quire)
  # Opened at run time. They are in NVIDIA's repository only, and a machine without a GPU does
  # without them, so nothing depends on them.
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS
      "libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}")
endif()
set(CPACK_PACKAGE_VENDOR Quire)
set(CPACK_PACKAGE_CONTACT Quire)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Serves large language models from one native binary")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime service)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONFLICTS ${other})
# For `quire pull`. Ubuntu 24.04 calls libcurl libcurl4t64.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4t64 | libcurl4, ca-certificates")
set(CPACK_GENERATOR DEB)
include(CPack)
