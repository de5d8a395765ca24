# SPDX-License-Identifier: Apache-2.0
# The execution provider for ONNX Runtime, a library of its own beside libcleave.so. It wants nothing of ONNX Runtime to be built (abi.h).
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_library(cleave_ort MODULE ${sources})
target_link_libraries(cleave_ort PRIVATE cleave Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(cleave_ort PROPERTIES PREFIX lib LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/ort INSTALL_RPATH "$ORIGIN")
if(SKBUILD)
    install(TARGETS cleave_ort LIBRARY DESTINATION cleave/lib COMPONENT python)
else()
    install(TARGETS cleave_ort LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
