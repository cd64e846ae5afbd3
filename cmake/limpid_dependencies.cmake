# What liblimpid.a links, as targets: read by Limpid's build, and by an application's find_package(limpid). They are
# GLOBAL, because a target that links the library may lie in a folder above this one.
find_package(Threads REQUIRED GLOBAL)
find_package(fmt REQUIRED GLOBAL)
find_package(simdjson REQUIRED GLOBAL)
find_package(ZLIB REQUIRED GLOBAL)

# On Debian utf8proc has no CMake package.
if(NOT TARGET limpid::utf8proc)
  find_library(LIMPID_utf8proc utf8proc REQUIRED)
  mark_as_advanced(LIMPID_utf8proc)
  add_library(limpid::utf8proc UNKNOWN IMPORTED GLOBAL)
  set_target_properties(limpid::utf8proc PROPERTIES IMPORTED_LOCATION ${LIMPID_utf8proc})
endif()
