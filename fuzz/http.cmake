quire_fuzzer(http_request SOURCES http_request_fuzz.cc DEPS http)
quire_fuzzer(http_connection SOURCES http_connection_fuzz.cc DEPS http)
