# `cmake --install` gives applications find_package(limpid) with limpid::limpid, and `pkg-config limpid`. The folder of the
# installation can be moved: no file in it names a path outside.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/limpid)
install(TARGETS limpid EXPORT limpid-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/limpid DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT limpid-targets NAMESPACE limpid:: DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/limpid-config.cmake.in limpid-config.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(limpid-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/limpid-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/limpid-config-version.cmake
              ${PROJECT_SOURCE_DIR}/cmake/limpid_dependencies.cmake DESTINATION ${package})

file(RELATIVE_PATH LIMPID_PREFIX_FROM_PKGCONFIG /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/limpid.pc.in limpid.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/limpid.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
