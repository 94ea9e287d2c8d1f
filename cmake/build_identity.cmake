# Writes OUTPUT, a source file that defines build_identity(): a digest of the sources below ROOT, and
# HOW they are compiled. Unlike a commit, it also changes with files that are not committed, and
# needs no git.
#   cmake -D ROOT=DIR -D HOW=TEXT -D OUTPUT=FILE -P build_identity.cmake
cmake_minimum_required(VERSION 3.25)
file(GLOB_RECURSE sources RELATIVE ${ROOT}
  ${ROOT}/cmake/* ${ROOT}/include/* ${ROOT}/patches/* ${ROOT}/src/*)
list(APPEND sources CMakeLists.txt)
list(SORT sources)
set(text "")
foreach(source ${sources})
  file(SHA256 ${ROOT}/${source} digest)
  string(APPEND text "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${text}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUTPUT}.new "#include \"start/build_identity.h\"

std::string_view quire::build_identity() {
  return \"${digest} (${HOW})\";
}
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
