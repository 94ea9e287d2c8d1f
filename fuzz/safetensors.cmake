quire_fuzzer(safetensors SOURCES safetensors_fuzz.cc DEPS tensor)
