# Patches third-party sources: the downloaded tree stays as it is, and the build compiles a patched
# copy.
include_guard(GLOBAL)
find_program(QUIRE_GIT git REQUIRED)

# quire_apply_patches(SOURCE_DIR from OUTPUT_DIR to PATCHES a.patch …)
#
# Makes OUTPUT_DIR a copy of SOURCE_DIR with PATCHES applied in order. Paths in a patch are relative
# to SOURCE_DIR, after one leading component (the "a/" and "b/" of `git diff`). Stops the
# configuration if a patch does not apply exactly. A file in OUTPUT_DIR is written only if its text
# differs, so that a new configuration does not cause a rebuild; files that the copy should not have
# are removed.
function(quire_apply_patches)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "SOURCE_DIR;OUTPUT_DIR" "PATCHES")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARG_PATCHES})
  set(staging ${ARG_OUTPUT_DIR}.new)
  file(REMOVE_RECURSE ${staging})
  file(COPY ${ARG_SOURCE_DIR}/ DESTINATION ${staging})
  foreach(patch IN LISTS ARG_PATCHES)
    quire_apply_patch(${staging} ${patch})
  endforeach()
  file(GLOB_RECURSE old_files RELATIVE ${ARG_OUTPUT_DIR} ${ARG_OUTPUT_DIR}/*)
  file(GLOB_RECURSE files RELATIVE ${staging} ${staging}/*)
  list(REMOVE_ITEM old_files ${files})
  foreach(file IN LISTS old_files)
    file(REMOVE ${ARG_OUTPUT_DIR}/${file})
  endforeach()
  foreach(file IN LISTS files)
    get_filename_component(folder ${ARG_OUTPUT_DIR}/${file} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    file(COPY_FILE ${staging}/${file} ${ARG_OUTPUT_DIR}/${file} ONLY_IF_DIFFERENT)
  endforeach()
  file(REMOVE_RECURSE ${staging})
endfunction()

# Applies one patch inside `dir`. Within a repository, git would skip the paths outside of its
# index; the ceiling hides the repository that the build folder may lie in.
function(quire_apply_patch dir patch)
  get_filename_component(parent ${dir} DIRECTORY)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env --unset=GIT_DIR GIT_CEILING_DIRECTORIES=${parent} LC_ALL=C
            ${QUIRE_GIT} apply --whitespace=nowarn ${patch}
    WORKING_DIRECTORY ${dir} RESULT_VARIABLE failed ERROR_VARIABLE reason)
  if(failed)
    string(REGEX MATCH "error: (patch failed: )?([^\n]*)" _ "${reason}")
    message(FATAL_ERROR "${patch} does not apply: ${CMAKE_MATCH_2}; adapt the patch to this version")
  endif()
endfunction()
