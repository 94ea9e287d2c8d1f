quire_fuzzer(tokenizer_json SOURCES tokenizer_json_fuzz.cc DEPS tokenizer)
quire_fuzzer(tokenizer_model SOURCES tokenizer_model_fuzz.cc DEPS tokenizer)
