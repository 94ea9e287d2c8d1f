# Rules of `cmake --install`: the binary, and the library for find_package(Quire). The library is
# one shared object with the public headers, so that programs do not need the headers of Quire's
# dependencies.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(libquire SHARED ${CMAKE_CURRENT_LIST_DIR}/libquire.cc)
set_target_properties(libquire PROPERTIES OUTPUT_NAME quire VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME quire)
target_link_libraries(libquire PRIVATE quire_start quire_engine)
set_property(TARGET libquire PROPERTY LINK_LIBRARY_OVERRIDE WHOLE_ARCHIVE,quire_start,quire_engine)
target_include_directories(libquire INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(libquire INTERFACE cxx_std_20)
add_library(Quire::quire ALIAS libquire)

install(TARGETS libquire EXPORT QuireTargets)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/quire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT QuireTargets NAMESPACE Quire:: FILE QuireConfig.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Quire)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/QuireConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/QuireConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Quire)
