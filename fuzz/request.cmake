quire_fuzzer(request SOURCES request_fuzz.cc DEPS cli)
