// SPDX-License-Identifier: Apache-2.0
// Layers that share a prefix and a device become `prefix.*`; a layer whose neighbours are elsewhere is named
// alone. What has no parameters is not named unless a prefix covers it: it follows its data.
#include "placement/describe.h"

#include <string.h>

/** Is the layer `prefix` (of that length) itself, or below it? */
static bool below(const char *layer, const char *prefix, size_t length) {
    return strncmp(layer, prefix, length) == 0 && (layer[length] == '.' || layer[length] == 0);
}

/** The length of the shortest prefix of a layer's name under which all layers are in the stage, and there is
 *  more than one; 0: there is none. */
static size_t common_prefix(const clv__layers *layers, int layer, int first, int end) {
    const char *name = layers->items[layer].name;
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t length = (size_t)(dot - name);
        int here = 0, elsewhere = 0;
        for (int i = 0; i < layers->n; i++) {
            if (below(layers->items[i].name, name, length)) (*(i >= first && i < end ? &here : &elsewhere))++;
        }
        if (here > 1 && elsewhere == 0) return length;
    }
    return 0;
}

/** A name as a pattern: what would mean something else there becomes `?`. */
static void add_pattern(clv__text *text, const char *name, size_t length, const char *tail,
                        const char *device) {
    if (text->n) clv__text_add(text, ",");
    for (size_t i = 0; i < length; i++)
        clv__text_add(text, "%c", strchr("*?[]\\,=", name[i]) ? '?' : name[i]);
    clv__text_add(text, "%s=%s", tail, device);
}

static void describe_stage(const clv__layers *layers, int first, int end, const char *device,
                           clv__text *text) {
    for (int i = first; i < end; i++) {
        const char *name = layers->items[i].name;
        size_t prefix = common_prefix(layers, i, first, end);
        bool covered = false;
        for (int before = first; prefix && before < i && !covered; before++)
            covered = below(layers->items[before].name, name, prefix);
        if (covered) continue;
        add_pattern(text, name, prefix ? prefix : strlen(name), prefix ? ".*" : "", device);
    }
}

void clv__division_describe(const clv__division *division, const clv__layers *layers,
                            clv_device *const *devices, clv__text *text) {
    for (int k = 0; k < division->n; k++) {
        int first = clv__division_first(division, k), end = division->end[k];
        const char *device = clv_device_info_get(devices[division->device[k]])->name;
        if (first == 0 && end == layers->n) {
            clv__text_add(text, "*=%s", device);
        } else {
            describe_stage(layers, first, end, device, text);
        }
    }
}
