quire_fuzzer(calls SOURCES calls_fuzz.cc DEPS server)
