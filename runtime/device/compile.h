// SPDX-License-Identifier: Apache-2.0
// One text, one program: from the cache on disk, or by the driver's compiler.
#ifndef CLV_DEVICE_COMPILE_H
#define CLV_DEVICE_COMPILE_H

#include "device/device.h"

/** Make the program of a text, or load it; *cached: it was loaded. Any thread.
 *  Errors  CLV_E_BUILD, with the compiler's words */
clv_status clv__compile(clv_device *device, const char *source, clv__error *error, clv__bprogram **out,
                        bool *cached);

#endif
