quire_fuzzer(template_parse SOURCES template_parse_fuzz.cc DEPS jinja)
quire_fuzzer(template_render SOURCES template_render_fuzz.cc DEPS jinja)
