# The instruction sets that kernels are compiled for, best first: the list is in the header, the flags of each set are here.
# docs/adr/0002-one-object-per-instruction-set.md
set(limpid_isa_list ${PROJECT_SOURCE_DIR}/src/executor/cpu/isa_list.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${limpid_isa_list})
set(limpid_cpu 2)  # which of the header's three lists
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(limpid_cpu 0)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(limpid_cpu 1)
endif()
file(READ ${limpid_isa_list} limpid_isas)
string(REGEX MATCHALL "#define [^#]*" limpid_isas "${limpid_isas}")
list(GET limpid_isas ${limpid_cpu} limpid_isas)
string(REGEX MATCHALL "DO\\([a-z0-9]+" limpid_isas "${limpid_isas}")
list(TRANSFORM limpid_isas REPLACE "DO.(.*)" "\\1")

set(limpid_isa_flags_scalar "")
# Without -mprfchw, a prefetch of memory that will be written fetches it for reading, and the write waits once more. CPUs
# that lack the instruction ignore it.
set(limpid_isa_flags_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt -mprfchw -mtune=haswell)
set(limpid_isa_flags_avx2vnni ${limpid_isa_flags_avx2} -mavxvnni)
set(limpid_isa_flags_avx512 ${limpid_isa_flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd
    -mprefer-vector-width=512 -mtune=skylake-avx512)
set(limpid_isa_flags_avx512vnni ${limpid_isa_flags_avx512} -mavx512vnni)
set(limpid_isa_flags_avx512bf16 ${limpid_isa_flags_avx512vnni} -mavx512bf16)
# Nothing beyond what every 64-bit ARM has, so there is nothing to ask the CPU for.
set(limpid_isa_flags_neon -march=armv8-a)

# limpid_kernels(<variable> <prefix> <pattern>...): compiles the sources once for each instruction set, as the target
# <prefix>_<isa>, in the namespace limpid::isa_<isa> and with that set's flags; puts the objects into the variable. The
# sources include nothing that emits inline symbols that objects would share (tools/check_isa_symbols.py checks).
function(limpid_kernels variable prefix)
  file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
  set(optimization -O3)
  if(LIMPID_SANITIZE)  # checked kernels compile for minutes at -O3
    set(optimization -O1)
  endif()
  set(objects "")
  foreach(isa IN LISTS limpid_isas)
    set(target ${prefix}_${isa})
    add_library(${target} OBJECT ${sources})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} PRIVATE limpid_flags)
    target_compile_definitions(${target} PRIVATE LIMPID_ISA=isa_${isa} LIMPID_ISA_${isa}=1)
    target_compile_options(${target} PRIVATE ${limpid_isa_flags_${isa}} -fno-exceptions ${optimization})
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
