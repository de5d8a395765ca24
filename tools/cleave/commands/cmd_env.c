// SPDX-License-Identifier: Apache-2.0
// cleave env: where this runs, to be copied into a report of a fault.
#include "cli.h"

#include <string.h>

/** A value after its name, broken into lines on a screen. */
static void print_value(const char *key, const json_t *value, int at) {
    char text[4096];
    const int width = screen_width(stdout);
    cli_env_value(key, value, text, sizeof text);
    if (width)
        screen_wrap(stdout, text, at, at < width / 2 ? at : 4, width);
    else
        fputs(text, stdout);
    putchar('\n');
}

/** The fields of an object, one a line; empty texts are passed over. */
static void print_object(json_t *object, int indent) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        const char *text = json_string_value(value);
        if (text && !*text) continue;
        char name[48];
        cli_env_name(key, name, sizeof name);
        int at = printf("%*s%-20s ", indent < 0 ? -indent : indent, "", indent < 0 ? key : name);
        print_value(key, value, at);
    }
}

static void print_quarantine(json_t *list) {
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one)
        printf("  %-20s variant '%s' of %s: %s\n", "in quarantine",
               json_string_value(json_object_get(one, "variant")),
               json_string_value(json_object_get(one, "op")), json_string_value(json_object_get(one, "why")));
}

static void print_devices(json_t *devices) {
    size_t i;
    json_t *device;
    json_array_foreach(devices, i, device) {
        printf("device %s\n", json_string_value(json_object_get(device, "name")));
        json_object_del(device, "name");
        print_quarantine(json_object_get(device, "quarantine"));
        json_object_del(device, "quarantine");
        print_object(device, 2);
    }
}

static void print_text(json_t *env) {
    const char *key;
    json_t *part;
    size_t i;
    json_t *library;
    json_object_foreach(env, key, part) {
        if (!strcmp(key, "devices")) {
            print_devices(part);
        } else if (json_is_object(part)) {
            printf("%s%s\n", key, json_object_size(part) ? "" : ": none");
            print_object(part, !strcmp(key, "environment") || !strcmp(key, "drivers") ? -2 : 2);
        } else if (json_array_size(part)) {
            printf("%s\n", key);
            json_array_foreach(part, i, library) printf("  %s\n", json_string_value(library));
        }
    }
}

int cmd_env(const cli_args *args) {
    cli_session session;
    cli_start_early(args, false, &session);
    session.whatever = true;
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    json_t *env = cli_env_json(&session);
    if (args->json) {
        code = cli_print_json(env);
    } else if (env) {
        print_text(env);
        json_decref(env);
        code = cli_finish_output();
    } else {
        code = cli_fail(EXIT_FAILED, "no memory to tell the environment");
    }
    cli_stop(&session);
    return code;
}
