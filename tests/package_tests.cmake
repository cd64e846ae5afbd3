# examples/ built against the installed package, and run.
if(NOT LIMPID_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_executable(write_tiny_model package/fixture/write_tiny_model.cpp)
  target_include_directories(write_tiny_model PRIVATE ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(write_tiny_model PRIVATE limpid limpid_flags fmt::fmt nlohmann_json::nlohmann_json)
  add_test(NAME package.examples
           COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}
                   -DWORK=${CMAKE_CURRENT_BINARY_DIR}/package_work -DWRITE_MODEL=$<TARGET_FILE:write_tiny_model>
                   -DCXX=${CMAKE_CXX_COMPILER} -DFLAGS=${CMAKE_CXX_FLAGS}
                   -P ${CMAKE_CURRENT_SOURCE_DIR}/package/package_test.cmake)
  set_tests_properties(package.examples PROPERTIES LABELS fast TIMEOUT ${limpid_test_timeout})
endif()
