# SPDX-License-Identifier: Apache-2.0
# Installs the library so that others find it: headers, the export set for find_package(cleave), cleave.pc for pkg-config; licence, pages
# and samples. `uninstall` is a target; `cpack` in the build folder makes a .deb.
# Installed targets are cleave::cleave (shared) and cleave::cleave_static.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/cleave)
if(CLEAVE_WITH_MPI)
    install(TARGETS cleave_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
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

# For pkg-config --static: what the static library needs. Written out, as Requires.private would bring include folders of these to
# whoever compiles against Cleave, whose headers include none of them, and ask that all of them are installed.
set(needs)
foreach(need JANSSON ZLIB XXHASH PCRE2 UTF8PROC ${CLEAVE_IMAGE_NEEDS} OPENCL CLBLAST)
    if((need STREQUAL "PCRE2" AND NOT CLEAVE_TOKENIZERS) OR
       (need STREQUAL "UTF8PROC" AND NOT CLEAVE_WITH_UTF8PROC) OR
       (need MATCHES "OPENCL|CLBLAST" AND NOT CLEAVE_OPENCL) OR (need STREQUAL "CLBLAST" AND NOT CLEAVE_CLBLAST))
        continue()
    endif()
    list(PREPEND needs ${${need}_STATIC_LDFLAGS}) # a library stands before those that it needs
endforeach()
list(REVERSE needs)
list(REMOVE_DUPLICATES needs) # the last of equal ones stays
list(REVERSE needs)
list(JOIN needs " " CLEAVE_PC_NEEDS)
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

# Licence, pages and samples.
foreach(page LICENSE README.md SECURITY.md docs samples)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${page})
        install(DIRECTORY ${PROJECT_SOURCE_DIR}/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}
                FILES_MATCHING PATTERN "*.md" PATTERN "*.c" PATTERN "*.h" PATTERN "*.svg" PATTERN "*.png")
    else()
        install(FILES ${PROJECT_SOURCE_DIR}/${page} DESTINATION ${CMAKE_INSTALL_DOCDIR})
    endif()
endforeach()

add_custom_target(uninstall VERBATIM
    COMMAND ${CMAKE_COMMAND} -DMANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake)

# A package for Debian. What it depends on is read from what it holds.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cleave)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The maintainers of Cleave <cleave@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "deep learning runtime in C over OpenCL")
set(CPACK_PACKAGE_DESCRIPTION "Trains and runs neural networks on CPUs, on GPUs of any vendor and on embedded accelerators.
The command, the library with its headers, manual pages, samples.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
if(CLEAVE_OPENCL)
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "dataset-fashion-mnist")
include(CPack)
