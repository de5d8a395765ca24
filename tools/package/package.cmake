# SPDX-License-Identifier: Apache-2.0
# Installs the library so that others find it: headers, the export set for find_package(cleave), cleave.pc for pkg-config.
# Installed targets are cleave::cleave (shared) and cleave::cleave_static.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cleave)
install(TARGETS ${CLEAVE_LIBRARIES} EXPORT cleave
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/cleave DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT cleave NAMESPACE cleave:: DESTINATION ${package_folder} FILE cleaveTargets.cmake)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cleaveConfig.cmake.in ${PROJECT_BINARY_DIR}/cleaveConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cleaveConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cleaveConfig.cmake ${PROJECT_BINARY_DIR}/cleaveConfigVersion.cmake
        DESTINATION ${package_folder})

# For pkg-config --static: what the static library needs.
set(CLEAVE_PC_REQUIRES "jansson zlib libxxhash")
if(CLEAVE_TOKENIZERS)
    string(APPEND CLEAVE_PC_REQUIRES " libpcre2-8")
endif()
if(CLEAVE_WITH_IMAGES)
    string(APPEND CLEAVE_PC_REQUIRES " libjpeg libpng")
endif()
if(CLEAVE_OPENCL)
    string(APPEND CLEAVE_PC_REQUIRES " OpenCL")
    if(CLEAVE_CLBLAST)
        string(APPEND CLEAVE_PC_REQUIRES " clblast")
    endif()
endif()
set(CLEAVE_PC_CFLAGS "")
set(CLEAVE_PC_LIBS "")
if(CLEAVE_INFERENCE)
    set(CLEAVE_PC_CFLAGS " -DCLEAVE_INFERENCE")
    set(CLEAVE_PC_LIBS " -Wl,--gc-sections")
endif()
# The folder above cleave.pc, whatever prefix it is installed under.
file(RELATIVE_PATH CLEAVE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/cleave.pc.in ${PROJECT_BINARY_DIR}/cleave.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cleave.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
