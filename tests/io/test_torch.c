/* test_torch.c - tests files of torch.save: their tensors, parts and facts, and pickles that are damaged or
 * hostile. torch_files.py writes the fixtures. */
#include "archives.h"
#include "tests/failing_malloc.h"

/* Array k, by names, has the numbers k + i / 64. */
static void are_filled(weft__weights *w, int64_t n)
{
    cr_assert(w->n == n, "%s: %lld arrays", w->path, (long long)w->n);
    for (int64_t k = 0; k < n; k++) {
        double want[64];
        char kind[128];
        for (int i = 0; i < 64; i++)
            want[i] = (double)k + i / 64.0;
        has_numbers(w, w->array[k].name, weft__kind_text(&w->array[k].kind, kind), want);
    }
}

FILE_TEST(torch, state_dicts_are_read)
{
    weft__weights *all = open_weights(foreign("lstm.pt"), NULL);
    are_filled(all, 10);
    cr_assert_str_eq(all->array[0].name, "lstm.bias_hh_l0");
    cr_assert_eq(array_of(all, "lstm.weight_ih_l0_reverse")->kind.size[1], 3);
    cr_assert_str_eq(fact_of(all, "format"), "torch.save, version 3");
    weft__weights_close(all);
    all = open_weights(foreign("parallel.pt"), NULL);
    are_filled(all, 10);
    cr_assert_str_eq(all->array[9].name, "module.out.weight");
    weft__weights_close(all);
}

FILE_TEST(torch, checkpoint_gives_its_model_or_a_part)
{
    static const char *const facts[][2] = {
        { "part", "model" }, { "epoch", "3" }, { "loss", "0.5" }, { "name", "tagger" },
        { "not called", "argparse.Namespace" }, { "args", "" }, { "big", "" },
    };
    const char *path = foreign("training.pt");
    weft__weights *all = open_weights(path, NULL);
    are_filled(all, 2);
    for (int i = 0; i < COUNT(facts); i++)
        cr_assert_str_eq(fact_of(all, facts[i][0]), facts[i][1], "%s", facts[i][0]);
    weft__weights_close(all);
    all = open_weights(path, "optimizer.state");
    cr_assert_eq(all->n, 6);
    has_numbers(all, "1.step", "float32 []", (double[]){ 1 });
    weft__weights_close(all);
    REFUSES_WEIGHTS(path, "nothing", "has no part nothing");
    REFUSES_WEIGHTS(path, "optimizer.param_groups", "has no tensors");
    all = open_weights(foreign("parts.pt"), NULL);
    cr_assert(all->n == 3 && !*fact_of(all, "part"));
    has_numbers(all, "decoder.0.w", "float32 [2]", (double[]){ 0, 1 / 64. });
    has_numbers(all, "decoder.1", "float32 [1]", (double[]){ 1 });
    weft__weights_close(all);
}

FILE_TEST(torch, views_have_their_numbers)
{
    double base[24], turned[24], row[6];
    for (int i = 0; i < 24; i++) {
        base[i] = i / 64.;
        turned[i % 6 * 4 + i / 6] = i / 64.;
        row[i % 6] = i / 64.;
    }
    weft__weights *all = open_weights(foreign("views.pt"), NULL);
    has_numbers(all, "base", "float32 [4, 6]", base);
    has_numbers(all, "turned", "float32 [6, 4]", turned);
    has_numbers(all, "row", "float32 [6]", row);
    has_numbers(all, "steps", "float32 [2, 2]", (double[]){ 8 / 64., 11 / 64., 20 / 64., 23 / 64. });
    has_numbers(all, "empty", "float32 [0, 3]", NULL);
    has_numbers(all, "zero_dim", "float32 []", (double[]){ 2.5 });
    static const char *const ones[] = { "tied.a", "tied.b", "noted", "attribute" };
    for (int i = 0; i < COUNT(ones); i++)
        has_numbers(all, ones[i], "float32 [2]", (double[]){ 1, 1 });
    has_numbers(all, "expanded", "float32 [2, 3]", (double[]){ 1, 1, 1, 1, 1, 1 });
    cr_assert(array_of(all, "turned")->bytes == array_of(all, "base")->bytes);
    weft__weights_close(all);
    all = open_weights(foreign("tensor.pt"), NULL);
    has_numbers(all, "tensor", "float32 [4, 6]", base);
    weft__weights_close(all);
}

FILE_TEST(torch, tensors_of_all_types_are_read)
{
    static const struct { const char *name, *kind; } types[] = {
        { "float16", "float16 [3]" }, { "bfloat16", "bfloat16 [3]" }, { "float64", "float64 [3]" },
        { "int8", "int8 [3]" },       { "int16", "int16 [3]" },       { "int32", "int32 [3]" },
        { "int64", "int64 [3]" },     { "uint8", "bytes [3]" },       { "uint16", "uint16 [3]" },
        { "uint32", "uint32 [3]" },   { "uint64", "uint64 [3]" },
    };
    static const char *const odd[] = { "complex64", "float8_e4m3fn", "seven" };
    weft__weights *all = open_weights(foreign("views.pt"), NULL);
    for (int i = 0; i < COUNT(types); i++)
        has_numbers(all, types[i].name, types[i].kind, (double[]){ 1, 0, 5 });
    has_numbers(all, "bool", "bytes [3]", (double[]){ 1, 0, 1 });
    for (int i = 0; i < COUNT(odd); i++)
        cr_assert_eq(array_of(all, odd[i])->kind.type, WEFT__ODD);
    weft__weights_close(all);
    all = open_weights(foreign("big.pt"), NULL);
    has_numbers(all, "n", "big-endian int64 [2]", (double[]){ 1, -2 });
    has_numbers(all, "w", "big-endian float32 [3]", (double[]){ 0, 1 / 64., 2 / 64. });
    weft__weights_close(all);
}

FILE_TEST(torch, objects_are_not_created)
{
    weft__weights *all = open_weights(foreign("evil.pt"), NULL);
    has_numbers(all, "w", "float32 [2]", (double[]){ 1, 1 });
    cr_assert(all->n == 1 && !strcmp(fact_of(all, "not called"), "posix.system"));
    weft__weights_close(all);
    REFUSES_WEIGHTS(foreign("evil_top.pt"), NULL, "but an object of posix.system");
    REFUSES_WEIGHTS(foreign("module.pt"), NULL, "torch.save(model.state_dict(), path)");
    cr_assert(access("weft_evil", F_OK));
}

/* ---- pickles ---- */
static const char *put_pickle(const void *code, size_t n)
{
    float numbers[4] = { 1, 2, 3, 4 };
    weft__turn(sizeof *numbers, numbers, sizeof numbers);
    return put_zip("f", (member[]){ { "a/data.pkl", code, n, false }, { "a/data/0", numbers, 16, false } },
                   2);
}

#define P "\x80\2"
#define STORAGE                                        \
    "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" \
    "0X\3\0\0\0cpuK\4tQ"
#define TENSOR(v) "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE v "\x89}tR"

FILE_TEST(torch, wrong_pickles_are_refused)
{
    static const struct { const char *code; size_t n; const char *part; } bad[] = {
#define BAD(code, part) { P code, sizeof(P code) - 1, part }
        BAD("I1\n.", "opcode 0x49 at offset 2: found an opcode that torch.save does not write"),
        BAD("", "end without a value"), BAD("}", "end without a value"), BAD(".", "empty stack"),
        BAD("X\xFF\xFF\xFF\xFF", "end of the file in its argument"),
        BAD("cposix\nsystem", "no end of a name"), BAD("cpo six\nsystem\n.", "not of plain letters"),
        BAD("K\1K\1\x93.", "no name of a function"), BAD("}R.", "empty stack"),
        BAD("}}R.", "without a tuple"), BAD("t.", "no mark"), BAD("(.", "empty stack"),
        BAD("}(K\1u.", "do not fit their object"), BAD("]K\1K\1s.", "do not fit their object"),
        BAD("}r\xFF\xFF\xFF\x7F.", "index of the memo that is too large"), BAD("h\1.", "memo does not have"),
        BAD(")Q.", "not a storage"), BAD("ctorch\nSize\n)R.", "wrong arguments"), BAD("}.", "has no tensors"),
        BAD("K\1.", "has no tensors"),
        BAD(TENSOR("K\5K\1\x85K\1\x85") ".", "tensor begins after its storage"),
        BAD(TENSOR("K\2K\3\x85K\1\x85") ".", "ends after"),
        BAD(TENSOR("K\0K\2\x85K\4\x85") ".", "ends after"),
        BAD(TENSOR("K\0K\2\x85K\xFF\x85") ".", "ends after"), BAD(TENSOR("K\0K\2\x85)") ".", "has no shape"),
        BAD(TENSOR("J\xFF\xFF\xFF\xFFK\1\x85K\1\x85") ".", "has no shape"),
        BAD(TENSOR("K\0J\xFF\xFF\xFF\xFF\x85K\1\x85") ".", "not a count"),
        BAD(TENSOR("K\0J\xFF\xFF\xFF\x7F\x85K\0\x85") ".",
            sizeof(size_t) > 4 ? "repeats its numbers" : "ends after"),
        BAD(TENSOR("K\0\x8A\x8\0\0\0\0\0\0\0\x40K\4\x86K\0K\1\x86") ".", "ends after"),
    };
    for (int i = 0; i < COUNT(bad); i++)
        REFUSES_WEIGHTS(put_pickle(bad[i].code, bad[i].n), NULL, bad[i].part);
    static const char good[] = P TENSOR("K\1K\2\x85K\2\x85") ".";
    weft__weights *all = open_weights(put_pickle(good, sizeof good - 1), NULL);
    has_numbers(all, "tensor", "float32 [2]", (double[]){ 2, 4 });
    weft__weights_close(all);
}

FILE_TEST(torch, cycles_and_depth_end)
{
    static const char cycle[] = P "}q\0(X\1\0\0\0wh\0X\1\0\0\0x" TENSOR("K\1K\2\x85K\2\x85") "u.";
    weft__weights *all = open_weights(put_pickle(cycle, sizeof cycle - 1), NULL);
    cr_assert(all->n == 1 && !strcmp(all->array[0].name, "x"));
    weft__weights_close(all);
    enum { N = 200000 };
    char *code = malloc(N + 1), *p = code;
    p += sprintf(p, "\x80\2]q%c", '\1');
    for (int i = 2; i < 100; i++) /* each list has the one before it four times: 4^98 paths */
        p += sprintf(p, "](h%ch%ch%ch%ceq%c", i - 1, i - 1, i - 1, i - 1, i);
    REFUSES_WEIGHTS(put_pickle(strcat(code, "."), (size_t)(p + 1 - code)), NULL, "nested more than 32 deep");
    code[0] = 0;
    p = code + sprintf(code, "\x80\2]q%c", '\1');
    for (int i = 2; i < 30; i++)
        p += sprintf(p, "](h%ch%ch%ch%ceq%c", i - 1, i - 1, i - 1, i - 1, i);
    REFUSES_WEIGHTS(put_pickle(strcat(code, "."), (size_t)(p + 1 - code)), NULL,
                    "the same objects too often");
    memset(code, ']', N);
    memcpy(code, P, 2);
    REFUSES_WEIGHTS(put_pickle(code, N), NULL, "more than 65536 values");
    free(code);
}

/* ---- damage ---- */
static bool opens_zip(const member *m, int n)
{
    content zip = new_zip(m, n);
    bool opened = opens(in_folder("damaged"), zip.at, zip.n);
    free(zip.at);
    return opened;
}

/* Changes each byte of the pickle in an archive whose checksums are right. */
static void pickle_survives(const char *golden)
{
    enum { MOST = 64 };
    weft__weights *all = open_weights(golden, NULL);
    weft__zip zip;
    member m[MOST], *pickle = NULL;
    cr_assert(weft__zip_list(all, &zip) && zip.n < MOST);
    for (int i = 0; i < zip.n; i++) {
        m[i] = (member){ zip.member[i].name, zip.member[i].bytes, zip.member[i].size, false };
        pickle = strstr(m[i].name, "/data.pkl") ? &m[i] : pickle;
    }
    unsigned char *code = malloc(pickle->n);
    memcpy(code, pickle->bytes, pickle->n);
    pickle->bytes = code;
    cr_assert(opens_zip(m, (int)zip.n));
    for (size_t i = 0; i < pickle->n; i++) {
        unsigned char was = code[i], other[] = { was ^ (unsigned char)(1 << i % 8), was + 1, 0xFF, '(' };
        for (int k = 0; k < rounds(COUNT(other), COUNT(other)); k++) {
            code[i] = other[k];
            opens_zip(m, (int)zip.n);
        }
        code[i] = was;
    }
    free(code);
    weft__weights_close(all);
}

FILE_TEST(torch, damaged_files_are_survived)
{
    survives_damage(foreign("tensor.pt"));
    survives_damage(foreign("big.pt"));
    pickle_survives(foreign("training.pt"));
    pickle_survives(foreign("parallel.pt"));
    pickle_survives(foreign("views.pt"));
}

FILE_TEST(torch, survives_failure_of_each_allocation)
{
    static const char *const files[] = { "training.pt", "big.pt", "packed.npz" };
    for (int i = 0; i < COUNT(files); i++) {
        weft_status s;
        weft__weights *all;
        FOR_EACH_FAILURE(s, weft__weights_open(foreign(files[i]), NULL, &all))
            cr_assert_eq(s, WEFT_ENOMEM, "%s: allocation %ld: %s", files[i], failing.at, weft_file_message());
        cr_assert_eq(s, WEFT_OK, "%s", weft_file_message());
        weft__weights_close(all);
    }
}
