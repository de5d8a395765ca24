// SPDX-License-Identifier: Apache-2.0
// Tables of separated values: which columns become samples and targets, quotes and separators, and what is refused: which line, why.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/data.h"
#include "data/dataset.h"
#include "data/table.h"
#include "io/support.h"

static clv_status table(const char *text, clv_table_config config, clv_dataset **out) {
    write_file("t.csv", text, strlen(text));
    return clv_dataset_table(support_runtime, "t.csv", &config, out);
}

/** Samples and targets of all rows, in their order. */
static void expect_rows(const clv_dataset *dataset, int rows, int columns, const float *samples, int targets,
                        const float *wanted) {
    float x[8], y[8];
    assert_int_equal(clv_dataset_info_get(dataset).count, rows);
    for (int r = 0; r < rows; r++) {
        clv__dataset_sample(dataset, r, x);
        clv__dataset_target(dataset, r, y);
        for (int c = 0; c < columns; c++) assert_true(fabsf(x[c] - samples[r * columns + c]) < 1e-6f);
        for (int c = 0; c < targets; c++) assert_true(fabsf(y[c] - wanted[r * targets + c]) < 1e-6f);
    }
}

TEST(columns_by_name) {
    static const char text[] = "id,width,price,height\n7,1,10,-2.5\n8,2,20,3e1\n\n9,3,30, 0.25 \n";
    const float x[] = {1, -2.5f, 2, 30, 3, 0.25f}, y[] = {10, 20, 30}, two[] = {-2.5f, 10, 30, 20, 0.25f, 30};
    clv_dataset *dataset = NULL;
    expect_ok(table(text, (clv_table_config){.targets = "price", .ignore = "id"}, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).classes, 0);
    expect_rows(dataset, 3, 2, x, 1, y);
    clv_dataset_destroy(dataset);
    // two targets, in the order they are named
    expect_ok(table(text, (clv_table_config){.targets = "height,price", .ignore = "id"}, &dataset));
    assert_string_equal(clv_dataset_info_get(dataset).number_names[0], "height");
    assert_string_equal(clv_dataset_info_get(dataset).number_names[1], "price");
    const clv_shape target = clv_dataset_info_get(dataset).target, pair = CLV_SHAPE(2);
    assert_true(clv_shape_equal(&target, &pair));
    expect_rows(dataset, 3, 1, (const float[]){1, 2, 3}, 2, two);
    clv_dataset_destroy(dataset);
}

TEST(words_are_classes) {
    static const char text[] = "a;kind\n1;pear\n2;apple\n3;\"fig; dried\"\n4;apple\n";
    const int32_t classes[] = {2, 0, 1, 0};
    clv_dataset *dataset = NULL;
    expect_ok(table(text, (clv_table_config){.targets = "kind"}, &dataset));
    assert_null(clv_dataset_info_get(dataset).number_names); // classes
    assert_null(clv_dataset_info_get(NULL).number_names);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 3);
    for (int i = 0; i < 4; i++) assert_int_equal(clv__dataset_label(dataset, i), classes[i]);
    clv_dataset_destroy(dataset);
    // words that begin like numbers; blanks around them are nothing
    expect_ok(
        table("a,t\n1,3 rooms\n2, 4 rooms\n3,3 rooms \n", (clv_table_config){.targets = "t"}, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).classes, 2);
    assert_int_equal(clv__dataset_label(dataset, 2), 0);
    clv_dataset_destroy(dataset);
    // numbers, when that is asked for; the same classes in every part of the table
    expect_ok(table("a\tb\n1\t3\n2\t5\n3\t4\n4\t3\n",
                    (clv_table_config){.targets = "b", .classes = true, .begin = 0.5, .end = 1}, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).classes, 3);
    assert_int_equal(clv_dataset_info_get(dataset).count, 2);
    assert_int_equal(clv__dataset_label(dataset, 0), 1);
    assert_int_equal(clv__dataset_label(dataset, 1), 0);
    clv_dataset_destroy(dataset);
}

TEST(quotes_and_line_ends) {
    clv_dataset *dataset = NULL;
    // a mark of UTF-8, names in quotes with all that may stand there, lines that end in other ways, none behind the last
    static const char text[] = "\xef\xbb\xbf\"x, \"\"y\"\"\n\",t\r\n\"1\",2\r3,\"4\"\r\n\r\n5,6";
    expect_ok(table(text, (clv_table_config){.targets = "t"}, &dataset));
    expect_rows(dataset, 3, 1, (const float[]){1, 3, 5}, 1, (const float[]){2, 4, 6});
    clv_dataset_destroy(dataset);
}

/** By the rows that are trained on, also where others are made; a column that is constant becomes 0. */
TEST(columns_are_standardized) {
    static const char text[] = "a,b,t\n1,5,0\n3,5,0\n5,5,0\n101,6,0\n";
    const float deviation = sqrtf(8.0f / 3);
    clv_dataset *dataset = NULL;
    clv_table_config config = {.targets = "t", .standardize = true, .end = 0.75};
    expect_ok(table(text, config, &dataset));
    expect_rows(dataset, 3, 2, (const float[]){-2 / deviation, 0, 0, 0, 2 / deviation, 0}, 1,
                (const float[3]){0});
    clv_dataset_destroy(dataset);
    config.begin = 0.75;
    config.end = 1;
    expect_ok(table(text, config, &dataset));
    expect_rows(dataset, 1, 2, (const float[]){98 / deviation, 1}, 1, (const float[1]){0});
    clv_dataset_destroy(dataset);
}

/** Numbers as people and spreadsheets write them; every row counts, not the first alone. */
TEST(numbers_as_written) {
    const struct {
        const char *text;
        bool decimal_comma;
        float wanted[3];
    } cases[] = {
        {"t,a\n 1 ,0\n2\t,0\n3\xc2\xa0,0\n", false, {1, 2, 3}},
        {"t;a\n\xe2\x88\x92"
         "1.5;0\n+2;0\n-.5;0\n",
         false,
         {-1.5f, 2, -.5f}},
        {"t;a\n$1,234,567.50;0\n$ 12;0\n1,234;0\n", false, {1234567.5f, 12, 1234}},
        {"t;a\n\"$576,941\";0\n\"$1,234\";0\n$12;0\n", false, {576941, 1234, 12}},
        {"t;a\n£1,234;0\n£12;0\n£5;0\n", false, {1234, 12, 5}},
        {"t;a\n12 %;0\n3%;0\n0.5 %;0\n", false, {12, 3, .5f}},
        {"t;a\n5 €;0\n-€6;0\n7;0\n", false, {5, -6, 7}},
        {"t;a\n1'234;0\n1 234 567;0\n12;0\n", false, {1234, 1234567, 12}},
        {"t;a\n1,5;0\n1.234,5;0\n1.234;0\n", true, {1.5f, 1234.5f, 1234}},
        {"t;a\n1e3;0\n1E-2;0\n3.;0\n", false, {1000, .01f, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_dataset *dataset = NULL;
        float y;
        expect_ok(table(cases[i].text,
                        (clv_table_config){.targets = "t", .decimal_comma = cases[i].decimal_comma},
                        &dataset));
        assert_int_equal(clv_dataset_info_get(dataset).classes, 0);
        for (int r = 0; r < 3; r++) {
            clv__dataset_target(dataset, r, &y);
            assert_true(fabsf(y - cases[i].wanted[r]) < 1e-6f * fabsf(y) + 1e-7f);
        }
        clv_dataset_destroy(dataset);
    }
}

/** Files as programs write them. */
TEST(files_as_met) {
    static const struct {
        const char *text;
        size_t bytes;
    } files[] = {
#define FILE_OF(text) {text, sizeof(text) - 1}
        FILE_OF("sep=;\r\na;t\r\n1;2\r\n3;4\r\n"),
        FILE_OF("a|t\n1|2\n3|4\n"),
        FILE_OF("\"a\"; t \n1;2\n3;4\n"),
        FILE_OF(",a,t\n0,1,2\n1,3,4\n"), // pandas' index
        FILE_OF("a,t,\n1,2,\n3,4, \n"),  // nothing behind the last separator
        FILE_OF("\xff\xfe"
                "a\0,\0t\0\n\0001\0,\0002\0\n\0003\0,\0004\0\n\0"),
        FILE_OF("\xfe\xff"
                "\0a\0,\0t\0\n\0001\0,\0002\0\n\0003\0,\0004\0\n"),
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        clv_dataset *dataset = NULL;
        const clv_table_config config = {.targets = " t"};
        write_file("t.csv", files[i].text, files[i].bytes);
        expect_ok(clv_dataset_table(support_runtime, "t.csv", &config, &dataset));
        expect_rows(dataset, 2, 1, (const float[]){1, 3}, 1, (const float[]){2, 4});
        clv_dataset_destroy(dataset);
    }
    // a name with commas in a table of semicolons
    clv_dataset *dataset = NULL;
    expect_ok(table("size, in m;t\n1;2\n3;4\n", (clv_table_config){.targets = "t"}, &dataset));
    expect_rows(dataset, 2, 1, (const float[]){1, 3}, 1, (const float[]){2, 4});
    clv_dataset_destroy(dataset);
    // letters beyond ASCII in UTF-16, of two and of four bytes
    static const char wide[] = "\xff\xfe"
                               "a\0\t\0t\0\n\0001\0\t\0\xe4\0\n\0002\0\t\0\x3d\xd8\x00\xde\n\0";
    const clv_table_config t = {.targets = "t"};
    write_file("t.csv", wide, sizeof wide - 1);
    expect_ok(clv_dataset_table(support_runtime, "t.csv", &t, &dataset));
    assert_non_null(
        strstr(clv_dataset_info_get(dataset).table, "\"classes\":[\"\xc3\xa4\",\"\xf0\x9f\x98\x80\"]"));
    clv_dataset_destroy(dataset);
}

/** Words become places; what later rows have besides is zeros; the record reads them the same way. */
TEST(words_are_places) {
    static const char text[] = "city,a,t\nUlm,1,1\nBonn,2,2\n Ulm ,3,3\nKiel,4,4\n";
    const float rows[] = {0, 1, 1, 1, 0, 2, 0, 1, 3};
    clv_dataset *dataset = NULL;
    clv_array read;
    clv_table_report report;
    expect_ok(table(text, (clv_table_config){.targets = "t", .end = 0.75}, &dataset));
    expect_rows(dataset, 3, 3, rows, 1, (const float[]){1, 2, 3});
    const char *record = clv_dataset_info_get(dataset).table;
    assert_non_null(strstr(record, "\"words\":{\"city\":[\"Bonn\",\"Ulm\"]}"));
    write_file("r.csv", text, strlen(text));
    expect_ok(clv_table_rows_read(support_runtime, "r.csv", record, NULL, &read, &report));
    assert_int_equal(read.shape.dims[1], 3);
    assert_memory_equal(read.data, rows, sizeof rows);
    assert_memory_equal((float *)read.data + 9, ((const float[]){0, 0, 4}), 12);
    assert_int_equal(report.unknown, 1);
    assert_true(report.unknown_line > 1 && *report.unknown_word);
    assert_int_equal(report.word_columns, 1);
    clv_array_reset(&read);
    clv_dataset_destroy(dataset);
    // numbers that are categories, where that is asked for
    expect_ok(
        table("code,t\n7,1\n9,2\n7,3\n", (clv_table_config){.targets = "t", .words = "code"}, &dataset));
    expect_rows(dataset, 3, 2, (const float[]){1, 0, 0, 1, 1, 0}, 1, (const float[]){1, 2, 3});
    clv_dataset_destroy(dataset);
}

TEST(what_is_missing) {
    static const char text[] = "city,a,t\nUlm,1,1\nNA,3,2\nBonn, ,3\nUlm,8,NaN\n";
    clv_dataset *dataset = NULL;
    clv_array read;
    expect_failure(table(text, (clv_table_config){.targets = "t"}, &dataset), CLV_E_FORMAT,
                   "line 3: nothing stands in column 'city' (in 1 of 4 rows; also 't' in 1, 'a' in 1); "
                   "clv_table_config.missing = "
                   "CLV_MISSING_DROP leaves such rows out");
    expect_ok(table(text, (clv_table_config){.targets = "t", .missing = CLV_MISSING_DROP}, &dataset));
    expect_rows(dataset, 1, 2, (const float[]){1, 1}, 1, (const float[]){1});
    assert_int_equal(clv_dataset_info_get(dataset).table_report.dropped, 3);
    clv_dataset_destroy(dataset);
    expect_ok(table(text, (clv_table_config){.targets = "t", .missing = CLV_MISSING_MEAN}, &dataset));
    // Bonn, Ulm, missing, a; the row without a target is left out
    expect_rows(dataset, 3, 4, (const float[]){0, 1, 0, 1, 0, 0, 1, 3, 1, 0, 0, 2}, 1,
                (const float[]){1, 2, 3});
    assert_int_equal(clv_dataset_info_get(dataset).table_report.filled, 2);
    assert_int_equal(clv_dataset_info_get(dataset).table_report.dropped, 1);
    write_file("r.csv", "a,city\n,null\n", 13);
    expect_ok(clv_table_rows_read(support_runtime, "r.csv", clv_dataset_info_get(dataset).table, NULL, &read,
                                  NULL));
    assert_memory_equal(read.data, ((const float[]){0, 0, 1, 2}), 16);
    clv_array_reset(&read);
    clv_dataset_destroy(dataset);
}

/** Targets, too, and back; differences that f32 does not have beside the mean are kept. */
TEST(targets_are_standardized) {
    static const char text[] = "when,t\n1700000000,400000\n1700000001,500000\n1700000002,600000\n";
    const float deviation = sqrtf(2.0f / 3);
    clv_dataset *dataset = NULL;
    clv_array read;
    clv_baseline baseline;
    expect_ok(table(text, (clv_table_config){.targets = "t", .standardize = true}, &dataset));
    const float row[] = {-1 / deviation, 0, 1 / deviation};
    expect_rows(dataset, 3, 1, row, 1, row);
    float results[] = {row[0], 0, 2};
    expect_ok(clv_dataset_baseline(support_runtime, dataset, 0, &baseline));
    assert_true(fabs(baseline.loss / (2e10 / 3) - 1) < 1e-6 && isnan(baseline.accuracy));
    const char *record = clv_dataset_info_get(dataset).table;
    write_file("r.csv", text, strlen(text));
    expect_ok(clv_table_rows_read(support_runtime, "r.csv", record, NULL, &read, NULL));
    for (int i = 0; i < 3; i++) assert_true(fabsf(((float *)read.data)[i] - row[i]) < 1e-6f);
    clv_array_reset(&read);
    expect_ok(clv__table_results_unscale(support_runtime, record, results, 3));
    assert_true(fabsf(results[0] - 400000) < 0.1f && results[1] == 500000 &&
                fabsf(results[2] - 663299.3f) < 0.2f);
    clv_dataset_destroy(dataset);
    expect_ok(table("a,t\n1,x\n2,y\n3,x\n4,x\n", (clv_table_config){.targets = "t"}, &dataset));
    expect_ok(clv_dataset_baseline(support_runtime, dataset, 0, &baseline));
    assert_int_equal(baseline.correct, 3);
    assert_true(baseline.accuracy == 0.75 && fabs(baseline.loss - 0.562335) < 1e-6);
    expect_failure(clv_dataset_baseline(support_runtime, dataset, 1, &baseline), CLV_E_VALUE, "target 1");
    clv_dataset_destroy(dataset);
}

/** 1 - 0.8 is a little less than 0.2, and a fifth of 100 rows is 20. */
TEST(parts_are_whole) {
    char text[2000] = "a,t\n";
    clv_dataset *dataset = NULL;
    for (int i = 0; i < 100; i++) sprintf(text + strlen(text), "%d,%d\n", i, i);
    expect_ok(table(text, (clv_table_config){.targets = "t", .end = 1 - 0.8}, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).count, 20);
    clv_dataset_destroy(dataset);
    expect_ok(table(text, (clv_table_config){.targets = "t", .begin = 1 - 0.8, .end = 1}, &dataset));
    assert_int_equal(clv_dataset_info_get(dataset).count, 80);
    clv_dataset_destroy(dataset);
}

/** Too many different words: 60 in 60 rows. */
TEST(names_of_rows) {
    char text[2000] = "name,t\n";
    clv_dataset *dataset = NULL;
    for (int i = 0; i < 60; i++) sprintf(text + strlen(text), "n%d,%d\n", i, i);
    expect_failure(table(text, (clv_table_config){.targets = "t"}, &dataset), CLV_E_VALUE,
                   "column 'name' has 60 different words in 60 rows");
    expect_ok(table(text, (clv_table_config){.targets = "t", .words = "name"}, &dataset));
    clv_dataset_destroy(dataset);
    expect_failure(table(text, (clv_table_config){.targets = "name"}, &dataset), CLV_E_VALUE,
                   "column 'name' has 60 classes in 60 rows");
    expect_failure(
        table(text, (clv_table_config){.targets = "t", .classes = true, .ignore = "name"}, &dataset),
        CLV_E_VALUE, "no column is left");
}

TEST(what_is_refused) {
    const clv_table_config t = {.targets = "t"};
    const struct {
        const char *text;
        clv_table_config config;
        clv_status status;
        const char *sentence;
    } cases[] = {
        {"a,t\n1,2\n3,\n", t, CLV_E_FORMAT, "'t.csv', line 3: nothing stands in column 't'"},
        {"a,t\n1,cat\n3,\n", t, CLV_E_FORMAT, "'t.csv', line 3: nothing stands in column 't'"},
        {"a,t\n1,2\n,3\n", t, CLV_E_FORMAT, "'t.csv', line 3: nothing stands in column 'a'"},
        {"a,t\n1,2\nfour,3\n", t, CLV_E_FORMAT,
         "line 3: 'four' in column 'a' is not a number, and 1 other of the column is one; mend it, take all "
         "of them as words"},
        {"a,t\n1,2\n1.5x,3\n", t, CLV_E_FORMAT, "line 3: '1.5x' in column 'a' is not a number"},
        {"a,t\n1,2\nnan,3\n", t, CLV_E_FORMAT, "line 3: nothing stands in column 'a' (in 1 of 2 rows)"},
        {"a,t\n1,2\n1e39,3\n", t, CLV_E_FORMAT, "'1e39' in column 'a' is not a number of f32"},
        {"a,t\n1,2\n\"1,5\",3\n", t, CLV_E_FORMAT,
         "line 3: '1,5' in column 'a' is a number if commas are decimal; clv_table_config.decimal_comma"},
        {"a;t\n1;2\n1.234.567;3\n", t, CLV_E_FORMAT,
         "'1.234.567' in column 'a' is a number if commas are decimal"},
        {"a;t\n1;2\n1,234;3\n", t, CLV_E_FORMAT, "'1,234' in column 'a' may be a thousand and more"},
        {"a;t\n1;2\n1.5;3\n",
         {.targets = "t", .decimal_comma = true},
         CLV_E_FORMAT,
         "'1.5' in column 'a' has a decimal point"},
        {"a;t\n1;2\n5%;3\n", t, CLV_E_FORMAT, "line 2: '1' in column 'a' has no percent sign"},
        {"a;t\n$1;2\n€5;3\n", t, CLV_E_FORMAT,
         "line 3: '€5' in column 'a' has another sign than '$' in line 2"},
        {"a;t\n0x10;2\n5;3\n", t, CLV_E_FORMAT, "line 2: '0x10' in column 'a' is not a number"},
        {"a;t\ninf;2\n5;3\n", t, CLV_E_FORMAT, "line 2: 'inf' in column 'a' is not a number of f32"},
        {"a,t\n1,2\n2,3 rooms\n", t, CLV_E_FORMAT,
         "line 3: '3 rooms' in column 't' is not a number, and 1 other of the column is one; mend it, or "
         "take "
         "each value as a class (clv_table_config.classes)"},
        {"a,t\n2024-01-31,2\n2024-02-01,3\n", t, CLV_E_FORMAT,
         "line 2: '2024-01-31' in column 'a' is a date"},
        {"a,t\n31.1.2024 12:30,2\n", t, CLV_E_FORMAT, "is a date, and a model takes numbers"},
        {"a,b,t\n1,,2\n2, ,3\n", t, CLV_E_FORMAT, "column 'b' has no values; leave it out"},
        {"a,s,t\n1,x,2\n",
         {.targets = "t,s"},
         CLV_E_FORMAT,
         "'x' in column 's' is a word, and columns that are learnt together"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", t, CLV_E_FORMAT,
         "is a Git LFS pointer"},
        {"\n<!DOCTYPE html>\n<html>", t, CLV_E_FORMAT,
         "is a web page; a table of separated values is wanted"},
        {"PK\003\004xxxx", t, CLV_E_FORMAT, "is a workbook"},
        {"a,t\n1,2\n\n3,4,5\n", t, CLV_E_FORMAT, "line 4: 3 values, and the first line names 2 columns"},
        {"a,t\n\"1\n2\",3\n4\n", t, CLV_E_FORMAT, "line 4: 1 values"},
        {"a,t\n1,\"2\n", t, CLV_E_FORMAT, "line 2: a quote is not closed"},
        {"a,t\n1,\"2\"3\n", t, CLV_E_FORMAT, "line 2: a value goes on behind its closing quote"},
        {"a,t\n\xff,3\n", t, CLV_E_FORMAT, "line 2: a value that is not UTF-8; save the table as UTF-8"},
        {"a,t\n", t, CLV_E_FORMAT, "names of its columns and rows behind it"},
        {"", t, CLV_E_FORMAT, "rows behind it"},
        {"a,,t\n1,2,3\n", t, CLV_E_FORMAT, "column 2 has no name in the first line; write one there"},
        {"a,t,a\n1,2,3\n", t, CLV_E_FORMAT, "two columns are called 'a'"},
        {"price,t\n1,2\n", {.targets = "prise"}, CLV_E_NOT_FOUND, "no column 'prise'; did you mean 'price'?"},
        {"a,t\n1,2\n", {.targets = "t,t"}, CLV_E_VALUE, "'t' is named twice"},
        {"a,t\n1,2\n", {.targets = "t,"}, CLV_E_NOT_FOUND, "no column ''"},
        {"a,t\n1,2\n", {.targets = "a,t"}, CLV_E_VALUE, "no column is left to learn from"},
        {"a,t\n1,2\n", {.targets = NULL}, CLV_E_VALUE, "which columns"},
        {"a,b,t\n1,2,3\n",
         {.targets = "t", .ignore = "b,t"},
         CLV_E_VALUE,
         "the column 't' is named among the targets and among those to ignore; name it in one of the lists"},
        {"a,t\n1,2\n", {.targets = "t", .begin = 0.5, .end = 0.2}, CLV_E_VALUE, "from 0.5 to 0.2"},
        {"a,t\n1,2\n",
         {.targets = "t", .end = 0.2},
         CLV_E_VALUE,
         "none of the 1 rows lies in the part from 0 to 0.2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_dataset *dataset = (clv_dataset *)1;
        expect_failure(table(cases[i].text, cases[i].config, &dataset), cases[i].status, cases[i].sentence);
        assert_null(dataset);
    }
    clv_dataset *dataset = NULL;
    write_file("t.csv", "a,t\n1\0,2\n", 9);
    expect_failure(clv_dataset_table(support_runtime, "t.csv", &t, &dataset), CLV_E_FORMAT, "a zero byte");
    expect_failure(clv_dataset_table(support_runtime, "none.csv", &t, &dataset), CLV_E_IO, "'none.csv'");
    remove("t.csv");
}

// ---- more rows of the same columns ------------------------------------------------------------------------------

/** Rows read by the record have the bits that the dataset has, whatever the order of the columns. */
TEST(rows_by_the_record) {
    static const char text[] = "id,a,b,side\n7,1,5,low\n8,2,7,\"up, high\"\n9,4,11,low\n";
    clv_dataset *dataset = NULL;
    clv_array rows;
    float sample[2];
    expect_ok(
        table(text, (clv_table_config){.targets = "side", .ignore = "id", .standardize = true}, &dataset));
    const char *record = clv_dataset_info_get(dataset).table;
    assert_non_null(record);
    assert_int_equal(clv_dataset_info_get(dataset).table_report.columns, 2);
    assert_int_equal(clv_dataset_info_get(dataset).classes, 2);
    static const char *const files[] = {text, "b;a\n5;1\n7;2\n11;4\n",
                                        "side,b,note,a\n,5,x,1\n,7,y,2\n,11,z,4\n"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        write_file("r.csv", files[f], strlen(files[f]));
        expect_ok(clv_table_rows_read(support_runtime, "r.csv", record,
                                      &(clv_table_rows_config){.ignore = "note"}, &rows, NULL));
        assert_int_equal(rows.shape.rank, 2);
        assert_int_equal(rows.shape.dims[0], 3);
        assert_int_equal(rows.shape.dims[1], 2);
        for (int i = 0; i < 3; i++) {
            clv__dataset_sample(dataset, i, sample);
            assert_memory_equal(sample, (float *)rows.data + 2 * i, sizeof sample);
        }
        clv_array_reset(&rows);
    }
    // a data set to test on: the same bits, and classes have their numbers where not all of them are there
    clv_dataset *tested = NULL;
    expect_ok(table("b;side;a\n7;up, high;2\n11;low;4\n",
                    (clv_table_config){.targets = "side", .record = record}, &tested));
    assert_int_equal(clv_dataset_info_get(tested).classes, 2);
    assert_string_equal(clv_dataset_info_get(tested).table, record);
    for (int i = 0; i < 2; i++) {
        float wanted[2];
        clv__dataset_sample(tested, i, sample);
        clv__dataset_sample(dataset, i + 1, wanted);
        assert_memory_equal(sample, wanted, sizeof sample);
        assert_int_equal(clv__dataset_label(tested, i), 1 - i);
    }
    clv_dataset_destroy(tested);
    expect_failure(
        table("a,b,side\n1,2,low\n", (clv_table_config){.targets = "b", .record = record}, &tested),
        CLV_E_VALUE,
        "the model learnt 'side', and the column 'b' is another one; leave its name out "
        "(clv_table_config.targets)");
    assert_null(tested);
    expect_failure(table("a,b,side\n1,2,low\n1,2,mid\n",
                         (clv_table_config){.targets = "side", .record = record}, &tested),
                   CLV_E_VALUE, "line 3: 'mid' is no class that the model was trained on");
    expect_failure(
        table("a,c,side\n1,2,low\n", (clv_table_config){.targets = "side", .record = record}, &tested),
        CLV_E_NOT_FOUND, "no column 'b', which the model was trained on");
    expect_failure(
        table("a,b,side\n1,2,low\n", (clv_table_config){.targets = "side", .record = "{}"}, &tested),
        CLV_E_FORMAT, "damaged");
    clv_dataset_destroy(dataset);
    assert_null(clv_dataset_info_get(NULL).table);
}

static void expect_text(const char *path, const char *wanted) {
    char text[512] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, wanted);
}

TEST(predictions) {
    static const char numbers[] = "{\"columns\":[\"a\"],\"targets\":[\"y\",\"say \\\"z\\\"\"]}";
    static const char words[] = "{\"columns\":[\"a\"],\"targets\":[\"t\"],\"classes\":[\"no\",\"up, high\"]}";
    const float values[] = {1.5f, -2, 1e-3f, 3}, scores[] = {0, 0, 1, 2, NAN, 1};
    expect_ok(clv_table_results_write(support_runtime, numbers, values, 2, "p.csv"));
    expect_text("p.csv", "y,\"say \"\"z\"\"\"\n1.5,-2\n0.00100000005,3\n");
    expect_ok(clv_table_results_write(support_runtime, words, scores, 3, "p.csv"));
    expect_text("p.csv",
                "t,p(no),\"p(up, high)\"\nno,0.5,0.5\n\"up, high\",0.268941421,0.731058579\n,nan,nan\n");
}

TEST(rows_that_are_refused) {
    static const char good[] = "{\"columns\":[\"a\",\"b\"],\"targets\":[\"t\"]}";
    const struct {
        const char *record, *rows;
        clv_status status;
        const char *said;
    } refused[] = {
        {good, "a,t\n1,2\n", CLV_E_NOT_FOUND,
         "'r.csv' has no column 'b', which the model was trained on; to do without it train again and leave "
         "it out (clv_table_config.ignore)"},
        {good, "a,b,c\n1,2,3\n", CLV_E_VALUE,
         "'r.csv' has a column 'c', which the model was not trained on: leave it out, or ignore it "
         "(`ignore` of clv_table_rows_read)"},
        {good, "a,b\n1,x\n", CLV_E_FORMAT,
         "'r.csv', line 2: 'x' in column 'b' is not a number, and the model was trained on numbers there"},
        {"{\"columns\":[\"a\"]}", "a\n1\n", CLV_E_FORMAT,
         "the record of a table's columns is damaged: 'targets' is no list of names"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"means\":[1],\"scales\":[0]}", "a\n1\n", CLV_E_FORMAT,
         "the record of a table's columns is damaged: 'scales' does not have a number above 0 for each "
         "column"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"means\":[1]}", "a\n1\n", CLV_E_FORMAT,
         "the record of a table's columns is damaged: one of 'means' and 'scales' is missing"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"words\":{\"a\":[1]}}", "a\n1\n", CLV_E_FORMAT,
         "the record of a table's columns is damaged: 'words' is no list for each column"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"missing\":\"x\"}", "a\n1\n", CLV_E_FORMAT,
         "the record of a table's columns is damaged: 'missing' is not mean or drop"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"target_means\":[1],\"target_scales\":[0]}", "a\n1\n",
         CLV_E_FORMAT,
         "the record of a table's columns is damaged: 'scales' does not have a number above 0 for each "
         "column"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"units\":{\"a\":\"x\"}}", "a\n1\n", CLV_E_FORMAT,
         "the record of a table's columns is damaged: 'units' does not have a sign for each column"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"units\":{\"a\":\"%\"}}", "a\n1\n", CLV_E_FORMAT,
         "'r.csv', line 2: '1' in column 'a' has no percent sign, and the model was trained on percents"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"units\":{\"a\":\"$\"}}", "a\n€1\n2\n", CLV_E_FORMAT,
         "'r.csv', line 2: '€1' in column 'a' has a sign, and the model was trained on '$'"},
        {"{\"columns\":[\"a\"],\"targets\":[\"t\"],\"missing\":\"drop\"}", "a\n1\n\"\"\n", CLV_E_FORMAT,
         "'r.csv', line 3: nothing stands in column 'a', and the model has no mean for it; leave the row "
         "out, or "
         "train with clv_table_config.missing = CLV_MISSING_MEAN"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clv_array rows;
        write_file("r.csv", refused[i].rows, strlen(refused[i].rows));
        assert_status(clv_table_rows_read(support_runtime, "r.csv", refused[i].record, NULL, &rows, NULL),
                      refused[i].status, support_runtime);
        assert_string_equal(clv_runtime_error(support_runtime), refused[i].said);
        assert_null(rows.data);
    }
}

TEST_MAIN(support_begin, support_end)
