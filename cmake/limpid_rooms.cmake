# One folder under src/ = one room = one object library, `limpid_<room>`.

add_library(limpid_flags INTERFACE)
target_compile_features(limpid_flags INTERFACE cxx_std_20)
# -ffp-contract=off: fused multiply-add is written out where it is meant, so that
# every instruction set adds in the same order and rounds alike.
target_compile_options(limpid_flags INTERFACE -Wall -Wextra -Wpedantic -Werror=return-type -ffp-contract=off
                                              -fno-math-errno -fPIC)
if(LIMPID_SANITIZE)
  target_compile_options(limpid_flags INTERFACE -fsanitize=${LIMPID_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LIMPID_SANITIZE})
endif()

# Reading the standard library and fmt takes a third of the time of a file; ccache does without, and better.
function(limpid_precompile target)
  if(NOT LIMPID_PRECOMPILE)
    return()
  endif()
  if(target STREQUAL "limpid_base")
    target_precompile_headers(limpid_base PRIVATE <fmt/format.h> <algorithm> <cstdint> <filesystem> <functional> <map>
                                                  <memory> <optional> <span> <string> <string_view> <vector>)
  else()
    target_precompile_headers(${target} REUSE_FROM limpid_base)
  endif()
endfunction()

function(limpid_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPENDS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/kernels/")  # compiled once for each instruction set (limpid_kernels)
  add_library(limpid_${room} OBJECT ${sources})
  target_include_directories(limpid_${room} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                   $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(limpid_${room} PRIVATE limpid_flags PUBLIC ${arg_DEPENDS})
  limpid_precompile(limpid_${room})
endfunction()
