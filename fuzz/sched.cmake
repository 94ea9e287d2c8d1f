quire_fuzzer(sched
  SOURCES sched_fuzz.cc ${CMAKE_SOURCE_DIR}/tests/sched/fake_device.cc
          ${CMAKE_SOURCE_DIR}/tests/sched/scheduler_sim.cc
  DEPS sched)
target_include_directories(sched_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests)
