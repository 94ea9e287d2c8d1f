# Checks a folder under .deps that a script downloads.

# Fails the configuration unless the stamp of `folder` (under .deps) is the hash of the current
# `pin` and `script`. `remedy` is appended to the words "run <script> once".
function(quire_require_fetched folder pin script remedy)
  set(dir ${CMAKE_SOURCE_DIR}/.deps/${folder})
  set(stamp "")
  if(EXISTS ${dir}/stamp)
    file(STRINGS ${dir}/stamp stamp LIMIT_COUNT 1)
  endif()
  execute_process(COMMAND cat ${pin} ${script}
                  COMMAND sha256sum
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE wanted)
  string(SUBSTRING "${wanted}" 0 64 wanted)
  if(NOT stamp STREQUAL wanted)
    message(FATAL_ERROR ".deps/${folder} is missing or of another version; "
                        "run ${script} once${remedy}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${CMAKE_SOURCE_DIR}/${pin} ${CMAKE_SOURCE_DIR}/${script} ${dir}/stamp)
endfunction()
