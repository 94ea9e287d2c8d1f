# CTest reads this file before it runs tests: they get an empty model folder, so that the user's
# default model takes no part. Tests of that model find the folder in QUIRE_USER_MODELS.
set(ENV{QUIRE_USER_MODELS} "$ENV{QUIRE_MODELS}")
set(ENV{QUIRE_MODELS} ${CMAKE_CURRENT_LIST_DIR}/no-models)
# Records of servers go to a folder of the tests, so that a chat does not find servers of the user.
set(ENV{XDG_RUNTIME_DIR} ${CMAKE_CURRENT_LIST_DIR}/no-servers)
