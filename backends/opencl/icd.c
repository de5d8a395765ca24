// SPDX-License-Identifier: Apache-2.0
// Drivers that the ICD loader knows and does not report: it skips what does not load. This file reads the
// same files and asks each library that the loader did not keep for the reason. Forms and order are those of
// ocl-icd 2.3 (libOpenCL(7)): OCL_ICD_VENDORS, else OPENCL_VENDOR_PATH, else /etc/OpenCL/vendors; a folder of
// .icd files, one .icd file, or a library. Khronos' loader also has OCL_ICD_FILENAMES, libraries with colons
// between.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "opencl.h"

enum { WHY_BYTES = 512 };
static const char usual_folder[] = "/etc/OpenCL/vendors";

typedef cl_int(CL_API_CALL *platforms_function)(cl_uint n, cl_platform_id *platforms, cl_uint *found);
typedef void *(CL_API_CALL *address_function)(const char *name);

typedef struct looking {
    void (*tell)(void *user, const char *name, const char *reason);
    void *user;
} looking;

static bool ends_in_icd(const char *name) {
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".icd") == 0;
}

/** The function of that name, as the loader looks for it. POSIX lets a pointer to data be one to a
 *  function. */
static void *function_of(void *library, const char *name) {
    address_function address;
    *(void **)&address = dlsym(library, "clGetExtensionFunctionAddress");
    void *there = address ? address(name) : NULL;
    return there ? there : dlsym(library, name);
}

/** Why a library is no driver, "" if it is one. */
static void ask_library(const char *path, char why[WHY_BYTES]) {
    *why = 0;
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(why, WHY_BYTES, "%s", reason ? reason : "its library cannot be loaded");
        return;
    }
    platforms_function platforms;
    *(void **)&platforms = function_of(library, "clIcdGetPlatformIDsKHR");
    cl_uint n = 0;
    if (!platforms || !dlsym(library, "clGetExtensionFunctionAddress")) {
        snprintf(why, WHY_BYTES, "'%s' is no OpenCL driver: it has no function %s", path,
                 platforms ? "clGetExtensionFunctionAddress" : "clIcdGetPlatformIDsKHR");
    } else {
        cl_int code = platforms(0, NULL, &n);
        if (code != CL_SUCCESS)
            snprintf(why, WHY_BYTES, "'%s' shows no platform: %s (%d)", path, clv__ocl_error_name(code),
                     (int)code);
        else if (n == 0)
            snprintf(why, WHY_BYTES, "'%s' shows no platform", path);
    }
    dlclose(library);
}

static void look_at_library(const looking *to, const char *name, const char *path) {
    char why[WHY_BYTES];
    ask_library(path, why);
    if (*why) to->tell(to->user, name, why);
}

/** An .icd file: its first line names a library. */
static void look_at_file(const looking *to, const char *path) {
    char line[PATH_MAX] = "", why[WHY_BYTES];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); // a pipe would wait for a writer
    struct stat is;
    if (file < 0 || fstat(file, &is) != 0) {
        snprintf(why, sizeof why, "'%.300s' cannot be read: %s", path, strerror(errno));
    } else if (!S_ISREG(is.st_mode)) {
        snprintf(why, sizeof why, "'%.300s' is no file", path);
    } else {
        ssize_t n = read(file, line, sizeof line - 1);
        line[n > 0 ? n : 0] = 0;
        line[strcspn(line, "\n")] = 0; // all else belongs to the name, blanks too
        snprintf(why, sizeof why, "'%.300s' %s", path,
                 is.st_size ? "names no library in its first line" : "is empty");
        if (*line) *why = 0;
    }
    if (file >= 0) close(file);
    if (*why)
        to->tell(to->user, name, why);
    else
        look_at_library(to, name, line);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void look_at_folder(const looking *to, const char *folder, bool asked_for) {
    char path[PATH_MAX], **names = NULL;
    size_t n = 0, room = 0;
    DIR *entries = opendir(folder);
    if (!entries) {
        snprintf(path, sizeof path, "the folder of drivers '%.300s' cannot be read: %s", folder,
                 strerror(errno));
        if (asked_for || errno != ENOENT) to->tell(to->user, folder, path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (!ends_in_icd(entry->d_name) || !clv__grow(&names, &room, n + 1, sizeof *names)) continue;
        if ((names[n] = clv__strdup(entry->d_name))) n++;
    }
    closedir(entries);
    if (n) qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < PATH_MAX) look_at_file(to, path);
        free(names[i]);
    }
    if (!n && asked_for) {
        snprintf(path, sizeof path, "the folder of drivers '%.300s' has no .icd file", folder);
        to->tell(to->user, folder, path);
    }
    free(names);
}

void clv__ocl_look_at_drivers(void (*tell)(void *user, const char *name, const char *reason), void *user) {
    const looking to = {tell, user};
    const char *given = getenv("OCL_ICD_VENDORS"), *path = getenv("OPENCL_VENDOR_PATH"),
               *files = getenv("OCL_ICD_FILENAMES");
    struct stat is;
    if (given && *given) {
        bool folder = stat(given, &is) == 0 && S_ISDIR(is.st_mode);
        if (folder || given[strlen(given) - 1] == '/')
            look_at_folder(&to, given, true);
        else if (ends_in_icd(given))
            look_at_file(&to, given);
        else
            look_at_library(&to, given, given);
    } else if (path && *path) {
        look_at_folder(&to, path, true);
    } else {
        look_at_folder(&to, usual_folder, false);
    }
    char *copy = clv__strdup(files), *rest = NULL;
    for (char *one = copy ? strtok_r(copy, ":", &rest) : NULL; one; one = strtok_r(NULL, ":", &rest))
        look_at_library(&to, one, one);
    free(copy);
}
