// SPDX-License-Identifier: Apache-2.0
// What of ONNX Runtime's binary interface this provider uses, written down here since no package gives its headers everywhere: opaque
// types, numbers, the functions of api.def, and the structs that a provider fills in. All of it is of version 23 (ONNX Runtime 1.23),
// and newer ones keep it. Nothing else of the provider knows where in a table a function stands.
//
// Source: onnxruntime_c_api.h and onnxruntime_ep_c_api.h of ONNX Runtime 1.23.2.
#ifndef CLV_ORT_ABI_H
#define CLV_ORT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORT_VERSION = 23 };

#ifndef CLV_ORT_HEADERS // they have these types
#define OPAQUE(name) typedef struct name name
OPAQUE(OrtEpApi);
OPAQUE(OrtEpDevice);
OPAQUE(OrtEpGraphSupportInfo);
OPAQUE(OrtGraph);
OPAQUE(OrtHardwareDevice);
OPAQUE(OrtKernelContext);
OPAQUE(OrtKeyValuePairs);
OPAQUE(OrtLogger);
OPAQUE(OrtNode);
OPAQUE(OrtNodeComputeContext);
OPAQUE(OrtOpAttr);
OPAQUE(OrtSessionOptions);
OPAQUE(OrtStatus);
OPAQUE(OrtTensorTypeAndShapeInfo);
OPAQUE(OrtTypeInfo);
OPAQUE(OrtValue);
OPAQUE(OrtValueInfo);
OPAQUE(OrtEp);
OPAQUE(OrtEpFactory);
#undef OPAQUE
typedef unsigned OrtErrorCode, OrtLoggingLevel, OrtOpAttrType, OrtHardwareDeviceType,
    ONNXTensorElementDataType;

typedef struct OrtApiBase {
    const void *(*GetApi)(uint32_t version); // a table of functions; NULL: an older ONNX Runtime
    const char *(*GetVersionString)(void);
} OrtApiBase;
#endif

/** OrtErrorCode. */
enum { ERROR_FAIL = 1, ERROR_ARGUMENT = 2, ERROR_EP = 11 };
/** OrtLoggingLevel. */
enum { LEVEL_INFO = 1, LEVEL_WARNING = 2 };
/** OrtHardwareDeviceType. */
enum { HARDWARE_CPU, HARDWARE_GPU };
/** OrtOpAttrType. */
enum {
    ATTRIBUTE_INT = 1,
    ATTRIBUTE_INTS,
    ATTRIBUTE_FLOAT,
    ATTRIBUTE_FLOATS,
    ATTRIBUTE_STRING,
    ATTRIBUTE_STRINGS,
    ATTRIBUTE_GRAPH,
    ATTRIBUTE_TENSOR
};
/** ONNXTensorElementDataType, which is ONNX's TensorProto.DataType. */
enum {
    ELEMENT_FLOAT = 1,
    ELEMENT_UINT8 = 2,
    ELEMENT_INT8 = 3,
    ELEMENT_INT32 = 6,
    ELEMENT_INT64 = 7,
    ELEMENT_BOOL = 9,
    ELEMENT_FLOAT16 = 10,
    ELEMENT_BFLOAT16 = 16
};

/** Its functions, by name. */
typedef struct ort_functions {
#define CALL(place, result, name, parameters) result(*name) parameters;
#include "api.def"
#undef CALL
} ort_functions;

/** OrtNodeFusionOptions. */
typedef struct ort_fusion_options {
    uint32_t version;
    bool drop_constant_initializers; // the provider has copies
} ort_fusion_options;

/** Those of OrtEpApi, from its begin. */
typedef struct ort_ep_functions {
    OrtStatus *(*CreateEpDevice)(OrtEpFactory *factory, const OrtHardwareDevice *device,
                                 const OrtKeyValuePairs *metadata, const OrtKeyValuePairs *options,
                                 OrtEpDevice **out);
    void (*ReleaseEpDevice)(OrtEpDevice *device);
    OrtStatus *(*AddNodesToFuse)(OrtEpGraphSupportInfo *info, const OrtNode *const *nodes, size_t n,
                                 const ort_fusion_options *options);
} ort_ep_functions;

/** OrtNodeComputeInfo: how a node that was made of several is computed. */
typedef struct ort_compute_info {
    uint32_t version;
    OrtStatus *(*create_state)(struct ort_compute_info *self, OrtNodeComputeContext *context, void **state);
    OrtStatus *(*compute)(struct ort_compute_info *self, void *state, OrtKernelContext *context);
    void (*release_state)(struct ort_compute_info *self, void *state);
} ort_compute_info;

/** OrtEp: the provider in one session. Functions that are NULL are as without them. */
typedef struct ort_ep {
    uint32_t version;
    const char *(*get_name)(const OrtEp *self);
    OrtStatus *(*get_capability)(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info);
    OrtStatus *(*compile)(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused, size_t n,
                          ort_compute_info **out, OrtNode **context_nodes);
    void (*release_compute_infos)(OrtEp *self, ort_compute_info **infos, size_t n);
    void *others[8]; // layouts, dynamic options, begin and end of runs, allocators, streams, compatibility
} ort_ep;

/** OrtEpFactory: which devices there are, and providers for sessions. */
typedef struct ort_factory {
    uint32_t version;
    const char *(*get_name)(const OrtEpFactory *self);
    const char *(*get_vendor)(const OrtEpFactory *self);
    OrtStatus *(*get_supported_devices)(OrtEpFactory *self, const OrtHardwareDevice *const *devices, size_t n,
                                        OrtEpDevice **out, size_t most, size_t *n_out);
    OrtStatus *(*create_ep)(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                            const OrtKeyValuePairs *const *metadata, size_t n,
                            const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **out);
    void (*release_ep)(OrtEpFactory *self, OrtEp *ep);
    uint32_t (*get_vendor_id)(const OrtEpFactory *self);
    const char *(*get_version)(const OrtEpFactory *self);
    void *validate_compatibility;
    OrtStatus *(*create_allocator)(OrtEpFactory *self, const void *memory, const OrtKeyValuePairs *options,
                                   void **out);
    void (*release_allocator)(OrtEpFactory *self, void *allocator);
    OrtStatus *(*create_data_transfer)(OrtEpFactory *self, void **out);
    bool (*is_stream_aware)(const OrtEpFactory *self);
    void *create_stream;
} ort_factory;

#endif
