# SPDX-License-Identifier: Apache-2.0
# The Python package, whole, in python/ of the build folder: to be tested there (CLEAVE_LIBRARY names the library), and what a wheel holds,
# which scikit-build-core makes (pyproject.toml): the library and a program that compiles kernels for it lie within the package then.
set(here ${CMAKE_CURRENT_LIST_DIR})
set(room ${PROJECT_BINARY_DIR}/python/cleave)
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/cleave/*)
file(GLOB modules CONFIGURE_DEPENDS ${here}/cleave/*)
add_custom_command(OUTPUT ${room}/_c.py
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${room}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${room}
    COMMAND ${CMAKE_COMMAND} -E copy ${modules} ${room}
    COMMAND ${CLEAVE_PYTHON} ${here}/generate.py ${room} >${room}/../log
    DEPENDS ${headers} ${modules} ${here}/generate.py ${PROJECT_SOURCE_DIR}/tools/declarations.py VERBATIM)
if(NOT SKBUILD)
    add_custom_target(cleave_python ALL DEPENDS ${room}/_c.py)
    return()
endif()
add_executable(cleave_compile_helper ${here}/compile_helper.c)
target_link_libraries(cleave_compile_helper PRIVATE cleave)
set_target_properties(cleave_compile_helper PROPERTIES OUTPUT_NAME cleave-compile-helper INSTALL_RPATH "$ORIGIN")
set_property(TARGET cleave PROPERTY VERSION)
set_property(TARGET cleave PROPERTY SOVERSION)
add_custom_target(cleave_python DEPENDS ${room}/_c.py cleave cleave_compile_helper cleave_ort)
install(TARGETS cleave LIBRARY DESTINATION cleave/lib COMPONENT python)
install(TARGETS cleave_compile_helper RUNTIME DESTINATION cleave/lib COMPONENT python)
install(FILES ${room}/_c.py DESTINATION cleave COMPONENT python)
