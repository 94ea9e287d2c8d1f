quire_fuzzer(grammar SOURCES grammar_fuzz.cc DEPS grammar)
