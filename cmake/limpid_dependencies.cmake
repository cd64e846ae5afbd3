# What liblimpid.a links, as targets: read by Limpid's build, and by an application's find_package(limpid). They are
# GLOBAL, because a target that links the library may lie in a folder above this one.
find_package(Threads REQUIRED GLOBAL)
find_package(fmt REQUIRED GLOBAL)
find_package(simdjson REQUIRED GLOBAL)
find_package(ZLIB REQUIRED GLOBAL)

# On Debian these two have no CMake package.
foreach(name IN ITEMS utf8proc pcre2-8)
  if(NOT TARGET limpid::${name})
    find_library(LIMPID_${name} ${name} REQUIRED)
    mark_as_advanced(LIMPID_${name})
    add_library(limpid::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(limpid::${name} PROPERTIES IMPORTED_LOCATION ${LIMPID_${name}})
  endif()
endforeach()
