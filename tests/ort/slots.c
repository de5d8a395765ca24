// SPDX-License-Identifier: Apache-2.0
// Is what ort/abi.h and ort/api.def say of ONNX Runtime's interface so? Compiled against its own headers, where they are (Debian's
// libonnxruntime-dev from 1.23 on); nothing is run.
#include <onnxruntime_c_api.h>

#define CLV_ORT_HEADERS
#include "abi.h"

#define SAME(a, b) _Static_assert((size_t)(a) == (size_t)(b), #a " is " #b)
#define CALL(place, result, name, parameters)                                                                \
    SAME(offsetof(OrtApi, name), (place) * sizeof(void *));                                                  \
    static inline void check_##name(const OrtApi *api) {                                                     \
        result(*is) parameters = api->name;                                                                  \
        (void)is;                                                                                            \
    }
#include "api.def"

SAME(offsetof(OrtEpApi, CreateEpDevice), offsetof(ort_ep_functions, CreateEpDevice));
SAME(offsetof(OrtEpApi, ReleaseEpDevice), offsetof(ort_ep_functions, ReleaseEpDevice));
SAME(offsetof(OrtEpApi, EpGraphSupportInfo_AddNodesToFuse), offsetof(ort_ep_functions, AddNodesToFuse));

SAME(offsetof(OrtNodeFusionOptions, ort_version_supported), offsetof(ort_fusion_options, version));
SAME(offsetof(OrtNodeFusionOptions, drop_constant_initializers),
     offsetof(ort_fusion_options, drop_constant_initializers));
SAME(offsetof(OrtNodeComputeInfo, CreateState), offsetof(ort_compute_info, create_state));
SAME(offsetof(OrtNodeComputeInfo, Compute), offsetof(ort_compute_info, compute));
SAME(offsetof(OrtNodeComputeInfo, ReleaseState), offsetof(ort_compute_info, release_state));

SAME(offsetof(OrtEp, GetName), offsetof(ort_ep, get_name));
SAME(offsetof(OrtEp, GetCapability), offsetof(ort_ep, get_capability));
SAME(offsetof(OrtEp, Compile), offsetof(ort_ep, compile));
SAME(offsetof(OrtEp, ReleaseNodeComputeInfos), offsetof(ort_ep, release_compute_infos));
SAME(offsetof(OrtEp, GetPreferredDataLayout), offsetof(ort_ep, others));

SAME(offsetof(OrtEpFactory, GetName), offsetof(ort_factory, get_name));
SAME(offsetof(OrtEpFactory, GetVendor), offsetof(ort_factory, get_vendor));
SAME(offsetof(OrtEpFactory, GetSupportedDevices), offsetof(ort_factory, get_supported_devices));
SAME(offsetof(OrtEpFactory, CreateEp), offsetof(ort_factory, create_ep));
SAME(offsetof(OrtEpFactory, ReleaseEp), offsetof(ort_factory, release_ep));
SAME(offsetof(OrtEpFactory, GetVendorId), offsetof(ort_factory, get_vendor_id));
SAME(offsetof(OrtEpFactory, GetVersion), offsetof(ort_factory, get_version));
SAME(offsetof(OrtEpFactory, CreateAllocator), offsetof(ort_factory, create_allocator));
SAME(offsetof(OrtEpFactory, ReleaseAllocator), offsetof(ort_factory, release_allocator));
SAME(offsetof(OrtEpFactory, CreateDataTransfer), offsetof(ort_factory, create_data_transfer));
SAME(offsetof(OrtEpFactory, IsStreamAware), offsetof(ort_factory, is_stream_aware));
SAME(offsetof(OrtEpFactory, CreateSyncStreamForDevice), offsetof(ort_factory, create_stream));

SAME(ERROR_FAIL, ORT_FAIL);
SAME(ERROR_ARGUMENT, ORT_INVALID_ARGUMENT);
SAME(ERROR_EP, ORT_EP_FAIL);
SAME(LEVEL_INFO, ORT_LOGGING_LEVEL_INFO);
SAME(HARDWARE_CPU, OrtHardwareDeviceType_CPU);
SAME(HARDWARE_GPU, OrtHardwareDeviceType_GPU);
SAME(ATTRIBUTE_INT, ORT_OP_ATTR_INT);
SAME(ATTRIBUTE_STRINGS, ORT_OP_ATTR_STRINGS);
SAME(ATTRIBUTE_TENSOR, ORT_OP_ATTR_TENSOR);
SAME(ELEMENT_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
SAME(ELEMENT_INT64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
SAME(ELEMENT_BOOL, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);
SAME(ELEMENT_FLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16);
SAME(ELEMENT_BFLOAT16, ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16);
