/* test_checkpoint.c - tests saving and loading. A load restores all state, with the same bytes when saved
 * again, or changes nothing and reports the reason. */
#include <sys/stat.h>
#include "checkpoint.h"
#include "io/weights/weights.h"

static bool hdf5(void) { return ending[1] == 'h'; }

Test(checkpoint, crc32c_matches_known_values)
{
    unsigned char zeros[32] = { 0 }, text[300];
    cr_assert_eq(weft__crc32c(0, "123456789", 9), 0xE3069283u);
    cr_assert_eq(weft__crc32c(0, zeros, 32), 0x8A9136AAu);       /* RFC 3720, B.4 */
    cr_assert_eq(weft__crc32c(0, NULL, 0), 0);
    for (int i = 0; i < 300; i++)
        text[i] = (unsigned char)dice(256);
    for (size_t cut = 0; cut <= 300; cut++)
        cr_assert_eq(weft__crc32c(weft__crc32c(0, text, cut), text + cut, 300 - cut),
                     weft__crc32c(0, text, 300));
}

/* ---- everything comes back ---- */
typedef struct {
    weft_real r[3];
    int32_t i[4];
    int64_t l[2];
    double d;
    char text[40];
    unsigned char raw[5];
} things;
static const things some = { { 1, (weft_real)-.5, 3 },    { 1, -2, INT32_MAX, 0 }, { INT64_MIN, 7 }, 0.1,
                             "Gr\303\274\303\237e\nzwei", { 0, 255, 0, 1, 2 } };
enum { ITEMS = 8 };
static const weft_checkpoint_item *items_of(things *t)
{
    static weft_checkpoint_item all[ITEMS];
    memcpy(all,
           (weft_checkpoint_item[ITEMS]){ { "reals", WEFT_REAL, t->r, 3 },
                                          { "ints", WEFT_I32, t->i, 4 },
                                          { "longs", WEFT_I64, t->l, 2 },
                                          { "best score", WEFT_F64, &t->d, 1 },
                                          { "text", WEFT_TEXT, t->text, 40 },
                                          { "raw", WEFT_BYTES, t->raw, 5 },
                                          { "nothing", WEFT_I32, NULL, 0 },
                                          { "\303\244", WEFT_BYTES, t->raw, 0 } },
           sizeof all);
    return all;
}

static bool same_things(const things *a, const things *b)
{
    return !memcmp(a->r, b->r, sizeof a->r) && !memcmp(a->i, b->i, sizeof a->i) &&
           !memcmp(a->l, b->l, sizeof a->l) && a->d == b->d && !memcmp(a->text, b->text, sizeof a->text) &&
           !memcmp(a->raw, b->raw, sizeof a->raw);
}

FORMAT_TEST(checkpoint, restores_all_state)
{
    const char *path = in_format("a");
    model a = model_in(w), b = model_new(99);
    train(&a, 3);
    weft_assign_values(a.carried, (weft_real[]){ 1, 2, 3, 4, 5, 6 }, 6);
    weft_stream_next(weft_stream_of(a.w, "a name with / and ."));
    weft_stream_next(weft_stream_of(b.w, "only in the other"));
    train(&b, 1);
    things t = some, other = { 0 };
    memset(other.text, 'x', sizeof other.text);
    DOES(weft_save(path, a.m, a.o, items_of(&t), ITEMS));
    cr_assert(state_of(&a) != state_of(&b));
    DOES(weft_load(path, b.m, b.o, items_of(&other), ITEMS));
    cr_assert(state_of(&a) == state_of(&b) && same_things(&other, &some));
    cr_assert_eq(weft_stream_next(weft_stream_of(a.w, "only in the other")),
                 weft_stream_next(weft_stream_of(b.w, "only in the other")));
    cr_assert(weft_optim_steps(b.o) == 3 && read_status(b.carried, other.r, 0) != WEFT_OK);
    weft_recover(b.w);
    memset(&other, 1, sizeof other);
    DOES(weft_load(path, NULL, NULL, items_of(&other), ITEMS));
    cr_assert(same_things(&other, &some));
    cr_assert(weft_checkpoint_item_size(path, "text") == (int64_t)strlen(some.text) + 1 &&
              weft_checkpoint_item_size(path, "ints") == 4 &&
              weft_checkpoint_item_size(path, "nothing") == 0);
    cr_assert(weft_checkpoint_item_size(path, "nix") == -1 && strstr(weft_file_message(), "nix"));
    nothing_is_open();
    CLEAN(b.w);
}

FORMAT_TEST(checkpoint, items_may_have_a_larger_capacity)
{
    const char *path = in_format("a");
    model a = model_in(w);
    char text[8] = "abc";
    int32_t ints[5] = { 1, 2, 3, 4, 5 };
    DOES(weft_save(path, a.m, NULL,
                   (weft_checkpoint_item[]){ { "t", WEFT_TEXT, text, 8 }, { "i", WEFT_I32, ints, 2 } }, 2));
    memset(text, 'x', 8);
    weft_checkpoint_item other_order[] = { { "i", WEFT_I32, ints, 5 }, { "t", WEFT_TEXT, text, 8 } };
    DOES(weft_load(path, NULL, NULL, other_order, 2));
    cr_assert(!memcmp(text, "abc\0\0\0\0", 8) && ints[0] == 1 && ints[1] == 2 && !ints[2] && !ints[3] &&
              !ints[4]);
    REFUSES(weft_load(path, NULL, NULL, NULL, 0), WEFT_EARG, "module is NULL");
}

/* PyTorch reads the arrays, and weft distinguishes texts and bytes. Safetensors has texts of UTF-8 only. */
FILE_TEST(checkpoint, safetensors_has_names_of_hdf5_and_texts_of_utf8)
{
    static const char *const bad[] = { "\377", "a\nb", "\355\240\200" };
    model a = model_in(w);
    const char *path = in_folder("a.safetensors");
    char raw[3] = "\377\376";
    weft_stream_next(weft_stream_of(a.w, "a \"name\" \\ with # and\nlines"));
    weft_checkpoint_item item = { "x#type", WEFT_TEXT, raw, 3 };
    DOES(weft_save(path, a.m, a.o, &item, 1));
    content b = read_bytes(path);
    cr_assert(strstr((char *)b.at + 8, "\"parameters/enc.weight_ih_l0\":{\"dtype\":\"F") &&
              strstr((char *)b.at + 8, "\"parameters/enc.weight_ih_l0#cell\":\"lstm\"") &&
              strstr((char *)b.at + 8, "\"items/x#type#type\":\"text\""));
    memset(raw, 0, sizeof raw);
    DOES(weft_load(path, a.m, a.o, &item, 1));
    cr_assert_str_eq(raw, "\377\376");
    for (int i = 0; i < COUNT(bad); i++) {
        item.name = bad[i];
        REFUSES(weft_save(path, a.m, a.o, &item, 1), WEFT_EARG, "expected UTF-8");
        DOES(weft_save(in_folder("a.h5"), a.m, a.o, &item, 1));
    }
    weft_parameter(a.m, "w\377", WEFT_SHAPE(1), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    REFUSES(weft_save_weights(path, a.m), WEFT_EARG, "\377\" is not UTF-8");
    DOES(weft_save_weights(in_folder("a.h5"), a.m));
}

FORMAT_TEST(checkpoint, text_without_final_0_is_refused)
{
    const char *path = in_format("a");
    char text[3] = "";
    weft__sealed *f;
    (void)w;
    cr_assert(weft__sealed_new(path, false, &f) == WEFT_OK);
    weft__sealed_write(f, "items/x", &(weft__kind){ WEFT__CHARS, 1, { 3 } }, "abc");
    DOES(weft__sealed_save(f));
    REFUSES(weft_load(path, NULL, NULL, &(weft_checkpoint_item){ "x", WEFT_TEXT, text, 3 }, 1), WEFT_EFORMAT,
            "without a final 0");
    cr_assert(!*text);
}

FORMAT_TEST(checkpoint, equal_state_gives_equal_bytes)
{
    const char *first = in_format("1"), *second = in_format("2");
    model a = model_in(w), b = model_new(2);
    weft_stream_next(weft_stream_of(a.w, "z"));
    weft_stream_next(weft_stream_of(a.w, "b"));
    weft_stream_of(b.w, "b");                    /* created in another order, and an unused one */
    weft_stream_of(b.w, "unused");
    train(&a, 2);
    things t = some;
    DOES(weft_save(first, a.m, a.o, items_of(&t), ITEMS));
    sleep(1);                                    /* a time in the file would show */
    DOES(weft_save(second, a.m, a.o, items_of(&t), ITEMS));
    cr_assert(equal_files(first, second));
    DOES(weft_load(first, b.m, b.o, NULL, 0));
    DOES(weft_save(second, b.m, b.o, items_of(&t), ITEMS));
    cr_assert(equal_files(first, second));
    CLEAN(b.w);
}

/* ---- refused files, which change nothing ---- */
static void refused(const model *k, const char *path, weft_status kind, const char *part)
{
    things t = some, before = t;
    uint32_t state = state_of(k);
    REFUSES(weft_load(path, k->m, k->o, items_of(&t), ITEMS), kind, part);
    REFUSES(weft_load(path, NULL, NULL, items_of(&t), ITEMS), kind, part);
    cr_assert(weft_checkpoint_item_size(path, "ints") == -1 && strstr(weft_file_message(), part));
    weft_load_report r;
    REFUSES(weft_load_matching(path, k->m, &r), kind, part);
    cr_assert(state_of(k) == state && same_things(&t, &before) && weft_ok(k->w));
    cr_assert(weft_load_weights(path, k->m, NULL, NULL) != WEFT_OK &&
              weft_load_weights(path, k->m, NULL, &r) != WEFT_OK && state_of(k) == state);
    nothing_is_open();
}

FORMAT_TEST(checkpoint, other_files_are_refused)
{
    model a = model_in(w);
    things t = some;
    const char *path = in_format("a"), *bad = in_folder("bad"), *pipe_ = in_folder("pipe");
    DOES(weft_save(path, a.m, a.o, items_of(&t), ITEMS));
    content good = read_bytes(path);
    refused(&a, in_folder("nowhere"), WEFT_ENOENT, "No such file");
    refused(&a, folder, WEFT_EFORMAT, "not a regular file");
    cr_assert(mkfifo(pipe_, 0600) == 0);
    refused(&a, pipe_, WEFT_EFORMAT, "not a regular file");
    refused(&a, "/dev/zero", WEFT_EFORMAT, "not a regular file");
    write_bytes(bad, "", 0);
    refused(&a, bad, WEFT_EFORMAT, "0 bytes; expected a checkpoint");
    char text[2000];
    memset(text, 'a', sizeof text);
    write_bytes(bad, text, sizeof text);
    refused(&a, bad, WEFT_EFORMAT, "not a checkpoint");
    for (size_t cut = 0; cut < good.n; cut += 1 + cut / 7 + (cut > 600) * 97) {
        write_bytes(bad, good.at, cut);
        refused(&a, bad, WEFT_EFORMAT, !hdf5() && cut > 8 ? cut > 42 ? "damaged" : "safetensors" :
                                       cut < 512          ? "bytes" : "damaged");
    }
    write_bytes(bad, good.at, good.n + 1);       /* with the 0 of read_bytes */
    refused(&a, bad, WEFT_EFORMAT, "damaged");
    good.at[hdf5() ? 16 : 40] ^= 1;
    write_bytes(bad, good.at, good.n);
    refused(&a, bad, WEFT_EFORMAT, hdf5() ? "version 0" : "damaged");
}

/* Writes a file by hand: the checksum is right, the content is wrong. */
static void forge(const char *path, const char *format, const char *version, const char *number, bool groups)
{
    char metadata[200];
    snprintf(metadata, sizeof metadata, "\"crc32c\":\"00000000\",\"format\":\"%s\",\"format_version\":\"%s\","
             "\"real\":\"%s\"", format, version, number);
    if (!hdf5()) {
        DOES(weft__save_safetensors(path, NULL, 0, metadata));
        return;
    }
    weft__h5 *h = weft__h5_new(path, WEFT__SEAL, true);
    weft__h5_describe(h, "/", "format", format);
    weft__h5_describe(h, "/", "format_version", version);
    weft__h5_describe(h, "/", "real", number);
    if (groups) {
        weft__h5_group(h, "parameters");
        weft__h5_group(h, "items");
    }
    DOES(weft__seal_hdf5(h, path));
}

FORMAT_TEST(checkpoint, valid_checksum_is_not_enough)
{
    model a = model_in(w);
    things t = some;
    const char *path = in_format("a"), *own = sizeof(weft_real) == 4 ? "float32" : "float64",
               *other = sizeof(weft_real) == 4 ? "float64" : "float32";
    forge(path, "weft checkpoint", "1", other, true);
    refused(&a, path, WEFT_EFORMAT, other);
    forge(path, "something", "1", own, true);
    refused(&a, path, WEFT_EFORMAT, "something");
    forge(path, "weft checkpoint", "7", own, true);
    refused(&a, path, WEFT_EFORMAT, "format_version");
    forge(path, "weft checkpoint", "1", own, false);
    uint32_t state = state_of(&a);
    REFUSES(weft_load(path, a.m, a.o, NULL, 0), WEFT_EFORMAT, "parameters/");
    REFUSES(weft_load(path, NULL, NULL, items_of(&t), ITEMS), WEFT_EFORMAT, "reals");
    cr_assert(state_of(&a) == state);
    nothing_is_open();
}

FORMAT_TEST(checkpoint, failed_load_changes_nothing)
{
    model a = model_in(w), b = model_new(2);
    const char *path = in_format("a");
    train(&a, 1);
    things t = some;
    DOES(weft_save(path, a.m, a.o, items_of(&t), ITEMS));
    uint32_t state = state_of(&b);
    int32_t small[1] = { 5 }, i32 = 9;
    char text[4] = "abc";
    struct { weft_checkpoint_item item; weft_status kind; const char *part;
    } bad[] = { { { "nix", WEFT_I32, &i32, 1 }, WEFT_EFORMAT, "item \"nix\" is not in the file" },
                { { "ints", WEFT_I32, small, 1 }, WEFT_ESHAPE, "int32 [4]" },
                { { "ints", WEFT_I64, small, 0 }, WEFT_EFORMAT, "int64 [0]" },
                { { "text", WEFT_TEXT, text, 4 }, WEFT_ESHAPE, "text [4]" },
                { { "text", WEFT_BYTES, text, 4 }, WEFT_EFORMAT, "\"text\" is text" } };
    for (int i = 0; i < COUNT(bad); i++) {
        weft_checkpoint_item two[2] = { { "longs", WEFT_I64, (int64_t[2]){ 1, 2 }, 2 }, bad[i].item };
        REFUSES(weft_load(path, b.m, b.o, two, 2), bad[i].kind, bad[i].part);
        REFUSES(weft_load(path, NULL, NULL, two, 2), bad[i].kind, bad[i].part);
        cr_assert(state_of(&b) == state && ((int64_t *)two[0].data)[0] == 1 && small[0] == 5 && i32 == 9 &&
                  !strcmp(text, "abc"));
    }
    CLEAN(b.w);
}

static const struct {
    const char *name;
    int64_t input, hidden;
    bool gru, extra, no_bias;
    const char *part;
    weft_status kind;
} others[] = {
    { "wider", 3, 6, false, false, false, "parameters/enc.weight_ih_l0 is float", WEFT_ESHAPE },
    { "gru", 3, 5, true, false, false, "cell lstm", WEFT_EFORMAT },
    { "more", 3, 5, false, true, false, "parameters/more.weight is not in the file", WEFT_EFORMAT },
    { "less", 3, 5, false, false, true, "expected \"bias none", WEFT_EFORMAT },
};

FORMAT_TEST(checkpoint, first_difference_to_the_model_is_reported)
{
    const char *path = in_format("a");
    weft_module *m = weft_module_new(w, "net");
    weft_lstm_new(m, "enc", &(weft_rnn_opts){ .input = 3, .hidden = 5 });
    DOES(weft_save(path, m, NULL, NULL, 0));
    for (int i = 0; i < COUNT(others); i++) {
        weft_module *n = weft_module_new(w, "net");
        weft_rnn_opts o = { .input = others[i].input,
                            .hidden = others[i].hidden,
                            .no_bias = others[i].no_bias };
        others[i].gru ? weft_gru_new(n, "enc", &o) : weft_lstm_new(n, "enc", &o);
        if (others[i].extra)
            weft_linear_new(n, "more", &(weft_linear_opts){ .in = 2, .out = 2 });
        REFUSES(weft_load(path, n, NULL, NULL, 0), others[i].kind, others[i].part);
        cr_assert(!others[i].gru || strstr(weft_file_message(), "cell gru_reset_after"), "%s",
                  weft_file_message());
        nothing_is_open();
    }
}

FORMAT_TEST(checkpoint, another_optimiser_is_refused)
{
    const char *path = in_format("a"), *bare = in_format("bare"), *swapped = in_format("swapped");
    weft_init one = { WEFT_INIT_CONSTANT, 1, 0 };
    weft_module *m = weft_module_new(w, "m"), *n = weft_module_new(w, "n");
    weft_parameter(m, "a", WEFT_SHAPE(2), one);
    weft_parameter(m, "b", WEFT_SHAPE(2), one);
    weft_parameter(n, "b", WEFT_SHAPE(2), one);
    weft_parameter(n, "a", WEFT_SHAPE(2), one);
    weft_optim *adam = weft_adam_new(m, NULL), *other = weft_adam_new(n, NULL);
    DOES(weft_save(path, m, adam, NULL, 0));
    DOES(weft_save(bare, m, NULL, NULL, 0));
    DOES(weft_save(swapped, n, other, NULL, 0));
    DOES(weft_load(path, m, adam, NULL, 0));
    DOES(weft_load(path, n, NULL, NULL, 0));     /* only the weights know their names */
    REFUSES(weft_load(bare, m, adam, NULL, 0), WEFT_EFORMAT, "no optimiser");
    REFUSES(weft_load(swapped, m, adam, NULL, 0), WEFT_EFORMAT, "\"b\"; expected \"a\", as in the module");
    weft_optim_free(adam);
    weft_optim *adamw = weft_adamw_new(m, NULL);
    REFUSES(weft_load(path, m, adamw, NULL, 0), WEFT_EFORMAT,
            "the optimiser in the file is Adam; expected AdamW");
    weft_optim_free(adamw);
    REFUSES(weft_load(path, m, weft_sgd_new(m, NULL), NULL, 0), WEFT_EFORMAT,
            "the optimiser in the file is Adam; expected SGD");
    OK(w);
    nothing_is_open();
}

FORMAT_TEST(checkpoint, optimiser_of_another_module_is_refused)
{
    const char *path = in_format("a"), *part = in_format("part");
    weft *v = open_on(WEFT_CPU);
    weft_init one = { WEFT_INIT_CONSTANT, 1, 0 };
    weft_module *m = weft_module_new(w, "m"), *twin = weft_module_new(w, "m"),
                *foreign = weft_module_new(v, "m"), *below = weft_submodule_new(m, "below");
    weft_module *all[] = { m, twin, foreign };
    for (int i = 0; i < COUNT(all); i++)
        weft_parameter(i ? weft_submodule_new(all[i], "below") : below, "a", WEFT_SHAPE(2), one);
    weft_optim *of_below = weft_adam_new(below, NULL);
    DOES(weft_save(part, m, of_below, NULL, 0));
    DOES(weft_load(part, m, of_below, NULL, 0));
    weft_optim_free(of_below);
    weft_optim *own = weft_adam_new(m, NULL);
    DOES(weft_save(path, m, own, NULL, 0));
    REFUSES(weft_save(part, below, own, NULL, 0), WEFT_EARG,
            "optimiser belongs to another module; expected one of m.below");
    for (int i = 1; i < COUNT(all); i++) {
        weft_optim *other = weft_adam_new(all[i], NULL);
        content before = read_bytes(path);
        REFUSES(weft_save(path, m, other, NULL, 0), WEFT_EARG, "weft_save: ");
        content after = read_bytes(path);
        cr_assert(before.n == after.n && !memcmp(before.at, after.at, before.n), "the file changed");
        REFUSES(weft_load(path, m, other, NULL, 0), WEFT_EARG,
                "optimiser belongs to another module; expected one of m ");
    }
    nothing_is_open();
    CLEAN(v);
}

FORMAT_TEST(checkpoint, matching_parameters_are_loaded_and_others_reported)
{
    const char *path = in_format("a");
    weft_module *m = weft_module_new(w, "net"), *n = weft_module_new(w, "net");
    weft_linear_new(m, "same", &(weft_linear_opts){ .in = 2, .out = 2 });
    weft_linear_new(m, "wider", &(weft_linear_opts){ .in = 2, .out = 2 });
    weft_linear_new(m, "gone", &(weft_linear_opts){ .in = 2, .out = 2 });
    weft_buffer(m, "state", WEFT_SHAPE(3));
    weft_lstm_new(m, "rnn", &(weft_rnn_opts){ .input = 1, .hidden = 3, .no_bias = true });
    weft_linear_new(n, "same", &(weft_linear_opts){ .in = 2, .out = 2 });
    weft_linear_new(n, "wider", &(weft_linear_opts){ .in = 2, .out = 3 });
    weft_linear_new(n, "new", &(weft_linear_opts){ .in = 2, .out = 2 });
    weft_buffer(n, "state", WEFT_SHAPE(3));
    /* also 12 rows */
    weft_gru_new(n, "rnn", &(weft_rnn_opts){ .input = 1, .hidden = 4, .no_bias = true });
    weft_assign_values(weft_find_parameter(m, "state"), (weft_real[]){ 1, 2, 3 }, 3);
    DOES(weft_save(path, m, NULL, NULL, 0));
    weft_real *gru = numbers(weft_find_parameter(n, "rnn.weight_ih_l0"));
    weft_load_report r;
    DOES(weft_load_matching(path, n, &r));
    cr_assert(r.loaded == 3 && r.missing == 2 && r.extra == 2 && r.other_shape == 4, "%d %d %d %d\n%s",
              r.loaded, r.missing, r.extra, r.other_shape, r.text);
    cr_assert(strstr(r.text, "missing parameters/new.weight\n") &&
                  strstr(r.text, "extra parameters/gone.bias\n"),
              "%s", r.text);
    cr_assert(strstr(r.text, "shape parameters/wider.bias is ") &&
                  strstr(r.text, "layer parameters/rnn.weight_ih_l0 is of"),
              "%s", r.text);
    same_bits("same", numbers(weft_find_parameter(n, "same.weight")),
              numbers(weft_find_parameter(m, "same.weight")), 4);
    same_bits("state", numbers(weft_find_parameter(n, "state")), numbers(weft_find_parameter(m, "state")), 3);
    same_bits("gru", numbers(weft_find_parameter(n, "rnn.weight_ih_l0")), gru, 12);
    DOES(weft_load_matching(path, n, NULL));
    for (int i = 0; i < 200; i++) {              /* a report that is cut short ends with a note */
        weft_buffer(n, name_with("another_parameter_with_a_name_", i), WEFT_SHAPE(1));
    }
    DOES(weft_load_matching(path, n, &r));
    cr_assert(r.missing == 202 && strlen(r.text) < sizeof r.text &&
              !strcmp(r.text + strlen(r.text) - 5, "\n...\n"));
}

FORMAT_TEST(checkpoint, part_of_a_model_can_be_saved_and_loaded)
{
    const char *path = in_format("part");
    model a = model_in(w), b = model_new(2);
    weft_module *part = weft_rnn_module(a.lstm), *to = weft_rnn_module(b.lstm);
    train(&a, 1);
    DOES(weft_save(path, part, NULL, NULL, 0));
    DOES(weft_load(path, to, NULL, NULL, 0));
    same_bits("weight", numbers(weft_find_parameter(b.m, "enc.weight_hh_l1")),
              numbers(weft_find_parameter(a.m, "enc.weight_hh_l1")), 100);
    REFUSES(weft_load(path, b.m, NULL, NULL, 0), WEFT_EFORMAT, "enc.weight_ih_l0 is not in the file");
    /* a part that is tied to the rest has the numbers all the same */
    weft_module *inner = weft_submodule_new(a.m, "inner");
    weft_tie(inner, "weight", weft_find_parameter(a.m, "out.weight"));
    DOES(weft_save(path, inner, NULL, NULL, 0));
    weft_module *alone = weft_module_new(b.w, "alone");
    weft_parameter(alone, "weight", WEFT_SHAPE(2, 10), (weft_init){ WEFT_INIT_ZERO, 0, 0 });
    DOES(weft_load(path, alone, NULL, NULL, 0));
    same_bits("tied", numbers(weft_find_parameter(alone, "weight")),
              numbers(weft_find_parameter(a.m, "again")), 20);
    CLEAN(b.w);
}

FILE_TEST(checkpoint, bad_arguments_are_refused)
{
    model a = model_in(w);
    const char *path = in_folder("a.h5");
    int32_t x = 1;
    char open_text[3] = { 'a', 'b', 'c' };
    REFUSES(weft_save(NULL, a.m, NULL, NULL, 0), WEFT_EARG, "path");
    REFUSES(weft_save("", a.m, NULL, NULL, 0), WEFT_EARG, "path");
    REFUSES(weft_save(path, NULL, NULL, NULL, 0), WEFT_EARG, "module");
    REFUSES(weft_load(NULL, a.m, NULL, NULL, 0), WEFT_EARG, "path");
    REFUSES(weft_load(path, NULL, NULL, NULL, 0), WEFT_EARG, "module");
    const weft_checkpoint_item one = { "x", WEFT_I32, &x, 1 };
    REFUSES(weft_load(NULL, NULL, NULL, &one, 1), WEFT_EARG, "path");
    REFUSES(weft_load(path, NULL, a.o, &one, 1), WEFT_EARG, "module is NULL");
    REFUSES(weft_load(path, NULL, NULL, NULL, 1), WEFT_EARG, "1 items and items is NULL");
    REFUSES(weft_load(path, NULL, NULL, NULL, -1), WEFT_EARG, "-1 items");
    REFUSES(weft_load_matching(path, NULL, NULL), WEFT_EARG, "module");
    REFUSES(weft_load_weights(path, NULL, NULL, NULL), WEFT_EARG, "module");
    REFUSES(weft_save_weights(path, NULL), WEFT_EARG, "module");
    REFUSES(weft_save(path, a.m, NULL, NULL, 1), WEFT_EARG, "NULL");
    cr_assert(weft_checkpoint_item_size(path, NULL) == -1 && weft_checkpoint_item_size(NULL, "a") == -1 &&
              weft_checkpoint_item_size(path, "a/b") == -1);
    struct { weft_checkpoint_item item; const char *part;
    } bad[] = {
        { { NULL, WEFT_I32, &x, 1 }, "no name" },        { { "", WEFT_I32, &x, 1 }, "no name" },
        { { "a/b", WEFT_I32, &x, 1 }, "cannot have" },   { { "a", WEFT_I32, NULL, 1 }, "no data" },
        { { "a", WEFT_I32, &x, -1 }, "no data" },        { { "a", (weft_dtype)17, &x, 1 }, "no type" },
        { { "t", WEFT_TEXT, open_text, 3 }, "final 0" }, { { "t", WEFT_TEXT, open_text, 0 }, "no data" },
        { { ".", WEFT_I32, &x, 1 }, "cannot have" }
    };
    for (int i = 0; i < COUNT(bad); i++)
        REFUSES(weft_save(path, a.m, NULL, &bad[i].item, 1), WEFT_EARG, bad[i].part);
    weft_checkpoint_item twice[2] = { { "a", WEFT_I32, &x, 1 }, { "a", WEFT_I32, &x, 1 } };
    REFUSES(weft_save(path, a.m, NULL, twice, 2), WEFT_EARG, "twice");
    weft_optim *broken = weft_adam_new(NULL, NULL);
    REFUSES(weft_save(path, a.m, broken, NULL, 0), WEFT_EARG, "optimiser");
    OK(a.w);
    cr_assert_eq(files_in_folder(), 0);
    nothing_is_open();
}

FORMAT_TEST(checkpoint, failed_context_writes_nothing)
{
    model a = model_in(w);
    const char *path = in_format("a"), *copy = in_format("copy");
    DOES(weft_save(path, a.m, a.o, NULL, 0));
    DOES(weft_save(copy, a.m, a.o, NULL, 0));
    train(&a, 1);
    weft_fail(a.w, WEFT_ENUMERIC, "a program's own check");
    REFUSES(weft_save(path, a.m, a.o, NULL, 0), WEFT_ENUMERIC, "a program's own check");
    REFUSES(weft_save_weights(path, a.m), WEFT_ENUMERIC, "a program's own check");
    REFUSES(weft_load(path, a.m, a.o, NULL, 0), WEFT_ENUMERIC, "a program's own check");
    cr_assert(equal_files(path, copy) && files_in_folder() == 2);
    weft_recover(a.w);
    DOES(weft_load(path, a.m, a.o, NULL, 0));
}
