quire_fuzzer(tool_call SOURCES tool_call_fuzz.cc DEPS server_tools)
