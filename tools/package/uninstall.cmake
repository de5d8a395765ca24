# SPDX-License-Identifier: Apache-2.0
# Takes out what the last `cmake --install` of this build has put somewhere: the files that its list names, and folders of
# ours that are empty then.
if(NOT EXISTS ${MANIFEST})
    message(FATAL_ERROR "There is no ${MANIFEST}: nothing was installed from this build folder")
endif()
file(STRINGS ${MANIFEST} files)
foreach(file IN LISTS files)
    file(REMOVE "$ENV{DESTDIR}${file}")
    # Folders that are ours: those with cleave in their names, and those in them.
    string(REGEX MATCH "^.*/cleave" ours "${file}")
    get_filename_component(folder "${file}" DIRECTORY)
    while(ours AND folder MATCHES "/cleave(/|$)")
        list(APPEND folders "${folder}")
        get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
endforeach()
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING) # the innermost first
foreach(folder IN LISTS folders)
    file(GLOB left "$ENV{DESTDIR}${folder}/*")
    if(NOT left)
        file(REMOVE_RECURSE "$ENV{DESTDIR}${folder}")
    endif()
endforeach()
list(LENGTH files n)
message(STATUS "removed ${n} files")
