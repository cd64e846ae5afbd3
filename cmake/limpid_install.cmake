# `cmake --install` gives applications find_package(limpid) and limpid::limpid.
include(CMakePackageConfigHelpers)
install(TARGETS limpid EXPORT limpid-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/limpid DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT limpid-targets NAMESPACE limpid:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/limpid)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/limpid-config.cmake.in limpid-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/limpid)
write_basic_package_version_file(limpid-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/limpid-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/limpid-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/limpid)
