// SPDX-License-Identifier: Apache-2.0
// The nearest name for a mistyped one, and patterns over the names of modules.
#include <string.h>

#include "base/modules.h"
#include "base/nearest.h"
#include "harness/harness.h"

static const char *const models[] = {"linear", "mlp",      "cnn",          "alexnet", "vgg11",
                                     "vgg16",  "resnet18", "mobilenet_v2", "resnet50"};

static const char *nearest_of(const char *word) {
    static clv__nearest nearest;
    nearest = (clv__nearest){.word = word};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) clv__nearest_offer(&nearest, models[i]);
    return nearest.name;
}

TEST(words) {
    static const char *const near[][2] = {
        {"resnet18", "resnet18"},
        {"resnt18", "resnet18"},
        {"rsenet50", "resnet50"},
        {"RESNET50", "resnet50"},
        {"vgg", "vgg11"},
        {"vgg61", "vgg11"},
        {"mpl", "mlp"},
        {"cn", "cnn"},
        {"cnn2", "cnn"},
        {"mobilenet", "mobilenet_v2"},
        {"mobilenetv2", "mobilenet_v2"},
        {"resnet101", "resnet18"},
        {"banana", ""},
        {"", ""},
        {"x", ""},
        {"qz", ""},
        {"linaer", "linear"},
        {"transformer", ""},
    };
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        assert_string_equal(nearest_of(near[i][0]), near[i][1]);
}

TEST(sentence) {
    clv__nearest nearest = {.word = "z"}; // which has no letter of it
    clv__nearest_offer(&nearest, "x");
    assert_string_equal(clv__nearest_text(&nearest), "");
    clv__nearest_offer(&nearest, "Z");
    assert_string_equal(clv__nearest_text(&nearest), "; did you mean 'Z'?");
    nearest = (clv__nearest){.word = "hots"};
    assert_string_equal(clv__nearest_text(&nearest), "");
    clv__nearest_offer(&nearest, "host");
    assert_string_equal(clv__nearest_text(&nearest), "; did you mean 'host'?");
    char longest[300];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    nearest = (clv__nearest){.word = longest};
    clv__nearest_offer(&nearest, "host");
    clv__nearest_offer(&nearest, longest);
    assert_string_equal(nearest.name, "");
    nearest = (clv__nearest){.word = "host"};
    clv__nearest_offer(&nearest, longest);
    clv__nearest_offer(&nearest, "");
    assert_string_equal(nearest.name, "");
}

TEST(modules) {
    static const struct {
        const char *pattern, *name;
        bool covers;
    } cases[] = {
        {"conv1", "conv1.weight", true},
        {"conv1", "conv11.weight", false},
        {"conv1", "layer1.0.conv1.weight", false},
        {"*.conv1", "layer1.0.conv1.weight", true},
        {"conv?", "conv2.bias", true},
        {"layer1.*", "layer1.0.bn1.weight", true},
        {"layer1.*", "layer10.0.bn1.weight", false},
        {"layer1", "layer1.0.bn1.weight", true},
        {"fc.*", "fc.weight", true},
        {"fc.weight", "fc.weight", true},
        {"fc.weight", "fc.bias", false},
        {"*", "fc.bias", true},
        {"*.bias", "layer1.0.bias", true},
        {"", "fc.bias", false},
        {"fc", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(clv__pattern_covers(cases[i].pattern, cases[i].name), cases[i].covers);
    assert_true(clv__patterns_cover(" conv1 ,, layer1.*,", "layer1.0.weight"));
    assert_true(clv__patterns_cover(" conv1 ,, layer1.*,", "conv1.bias"));
    assert_false(clv__patterns_cover(" conv1 ,, layer1.*,", "fc.bias"));
    assert_false(clv__patterns_cover(NULL, "fc.bias"));
    assert_false(clv__patterns_cover(" , ", "fc.bias"));

    clv__nearest nearest = {.word = "layr2.*"};
    clv__nearest_offer_modules(&nearest, "layer1.0.conv1.weight");
    clv__nearest_offer_modules(&nearest, "layer2.0.conv1.weight");
    assert_string_equal(nearest.name, "layer2");
}

TEST_MAIN(NULL, NULL)
