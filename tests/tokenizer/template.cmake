quire_test(chat_template_test SOURCES chat_template_test.cc DEPS template LABELS threaded)
quire_test(chat_template_golden_test SOURCES chat_template_golden_test.cc DEPS template)
# Not under sanitizers, which slow the measured work unevenly.
if(NOT QUIRE_SANITIZE)
  quire_test(template_cost_test SOURCES template_cost_test.cc DEPS template)
endif()
