# SPDX-License-Identifier: Apache-2.0
# What a wheel holds besides Python: the library, a program that compiles kernels for it, and the C interface for cffi. Made by
# scikit-build-core (python/pyproject.toml); `cleave_python` puts all of it into build/.../python to be tested without a wheel.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
set(here ${CMAKE_CURRENT_LIST_DIR})
set(room ${PROJECT_BINARY_DIR}/python/cleave)
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/cleave/*)
add_custom_command(OUTPUT ${room}/_c.py
    COMMAND ${Python3_EXECUTABLE} ${here}/generate.py ${room}
    DEPENDS ${headers} ${here}/generate.py ${PROJECT_SOURCE_DIR}/tests/abi/declarations.py VERBATIM)
add_executable(cleave_compile_helper ${here}/compile_helper.c)
target_link_libraries(cleave_compile_helper PRIVATE cleave)
set_target_properties(cleave_compile_helper PROPERTIES OUTPUT_NAME cleave-compile-helper RUNTIME_OUTPUT_DIRECTORY ${room}/lib
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
set_property(TARGET cleave PROPERTY VERSION)
set_property(TARGET cleave PROPERTY SOVERSION)
set_target_properties(cleave PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${room}/lib)
add_custom_target(cleave_python DEPENDS ${room}/_c.py cleave cleave_compile_helper)
install(TARGETS cleave LIBRARY DESTINATION cleave/lib COMPONENT python)
install(TARGETS cleave_compile_helper RUNTIME DESTINATION cleave/lib COMPONENT python)
install(FILES ${room}/_c.py DESTINATION cleave COMPONENT python)
