quire_fuzzer(api_keys SOURCES api_keys_fuzz.cc DEPS server)
