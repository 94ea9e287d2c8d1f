// An empty source, because CMake requires one. The shared library consists of the static libraries.
