# Python beside C++: tests/<folder>/test_*.py are part of `make test` (small packages, LIMPID_PYTHON),
# tests/oracles/live_*.py of `make test-oracles` (torch, transformers, llama.cpp, LIMPID_ORACLES_PYTHON).
# oracles/clients_of_server.py needs clients of its own (LIMPID_CLIENTS_PYTHON).
# Each runs as a script with the program's path in LIMPID_PROGRAM, and exits with 77 when all of it was skipped.
# Without LIMPID_PYTHON, those of `make test` count as skipped.
set(LIMPID_PYTHON "" CACHE FILEPATH "Python with tools/requirements-light.txt (tools/venv.sh light)")
set(LIMPID_CLIENTS_PYTHON "" CACHE FILEPATH "Python with tools/requirements-clients.txt (tools/venv.sh clients)")
set(LIMPID_ORACLES_PYTHON "" CACHE FILEPATH "Python with tools/requirements-oracles.txt (tools/venv.sh oracles)")
find_package(Python3 COMPONENTS Interpreter)

function(limpid_python_tests python label timeout)
  foreach(script IN LISTS ARGN)
    get_filename_component(name ${script} NAME_WE)
    get_filename_component(room ${script} DIRECTORY)
    get_filename_component(room ${room} NAME)
    if(python)
      add_test(NAME ${room}.${name} COMMAND ${python} ${script})
    else()
      add_test(NAME ${room}.${name} COMMAND ${CMAKE_COMMAND} -E echo
               "skipped: there is no Python with the packages of tools/requirements-light.txt")
    endif()
    set_tests_properties(${room}.${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout} SKIP_RETURN_CODE 77
      SKIP_REGULAR_EXPRESSION "^skipped: there is no Python"
      ENVIRONMENT "LIMPID_PROGRAM=$<TARGET_FILE:limpid_program>;PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/oracles;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()

if(TARGET limpid_program AND NOT CMAKE_CROSSCOMPILING)
  file(GLOB fast_scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/test_*.py)
  file(GLOB live_scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/oracles/live_*.py)
  limpid_python_tests("${LIMPID_PYTHON}" fast ${limpid_test_timeout} ${fast_scripts})
  if(LIMPID_CLIENTS_PYTHON)
    limpid_python_tests("${LIMPID_CLIENTS_PYTHON}" oracle 600 ${CMAKE_CURRENT_SOURCE_DIR}/oracles/clients_of_server.py)
  endif()
  if(LIMPID_ORACLES_PYTHON)
    limpid_python_tests("${LIMPID_ORACLES_PYTHON}" oracle 7200 ${live_scripts})
  endif()
endif()

if(Python3_FOUND)
  add_test(NAME house.layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_layers.py)
  add_test(NAME house.isa_symbols
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_isa_symbols.py ${PROJECT_BINARY_DIR})
  set_tests_properties(house.layers house.isa_symbols PROPERTIES LABELS fast SKIP_RETURN_CODE 77)
endif()
