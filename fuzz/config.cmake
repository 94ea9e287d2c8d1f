quire_fuzzer(config SOURCES config_fuzz.cc DEPS model)
