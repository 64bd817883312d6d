/* test_checkpoint_files.c - tests damaged checkpoints, unwritable paths and several threads.
 * test_file_write.c tests writing, tests/fuzz more damage. */
#include <pthread.h>
#include <sys/stat.h>
#include "checkpoint.h"

/* A version and a byte count that continue beyond the end of the header. */
FILE_TEST(checkpoint_files, endless_numbers_in_the_header_are_refused)
{
    model a = model_in(w);
    const char *path = in_folder("head");
    char text[2000];
    memset(text, '1', sizeof text);
    memcpy(text, "weft checkpoint ", 16);
    write_bytes(path, text, sizeof text);
    REFUSES(weft_load(path, a.m, a.o, NULL, 0), WEFT_EFORMAT, "version 111111111111111;");
    memcpy(text, "weft checkpoint 1\nbytes ", 24);
    write_bytes(path, text, sizeof text);
    REFUSES(weft_load(path, a.m, a.o, NULL, 0), WEFT_EFORMAT, "expected 18446744073709551615");
}

FILE_TEST(checkpoint_files, unwritable_paths_are_refused)
{
    model a = model_in(w);
    char deep[200];
    snprintf(deep, sizeof deep, "%s/no/such/folder", in_folder(""));
    REFUSES(weft_save(deep, a.m, NULL, NULL, 0), WEFT_EIO, "No such file");
    REFUSES(weft_save(folder, a.m, NULL, NULL, 0), WEFT_EIO, "not a regular file");
    REFUSES(weft_save("/dev/null", a.m, NULL, NULL, 0), WEFT_EIO, "not a regular file");
    const char *pipe_ = in_folder("pipe.h5");
    cr_assert(mkfifo(pipe_, 0600) == 0);
    REFUSES(weft_save_weights(pipe_, a.m), WEFT_EIO, "not a regular file");
    char *longest = calloc(1, 6000);
    size_t start = (size_t)snprintf(longest, 6000, "%s", in_folder(""));
    memset(longest + start, 'a', 5999 - start);
    REFUSES(weft_save(longest, a.m, NULL, NULL, 0), WEFT_EIO, "too long");
    longest[start + 300] = 0;
    REFUSES(weft_save(longest, a.m, NULL, NULL, 0), WEFT_EIO, "too long");
    free(longest);
    cr_assert_eq(files_in_folder(), 1);
}

/* Every single bit of the file, one at a time: refused, all of them. */
FORMAT_TEST(checkpoint_files, each_flipped_bit_is_detected)
{
    const char *path = in_format("a"), *bad = in_format("bad");
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    DOES(weft_save(path, m, NULL, NULL, 0));
    content b = read_bytes(path);
    weft_assign_values(x, (weft_real[]){ 5, 6 }, 2);
    for (size_t bit = 0; bit < 8 * b.n; bit += rounds(CHECK_SANITIZED ? 61 : 7, 1)) {
        b.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        write_bytes(bad, b.at, b.n);
        cr_assert_eq(weft_load(bad, m, NULL, NULL, 0), WEFT_EFORMAT, "bit %zu", bit);
        b.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    same_bits("x", numbers(x), ((weft_real[]){ 5, 6 }), 2);
}

/* Right checksums of numbers that no run can have are not enough. */
FORMAT_TEST(checkpoint_files, impossible_counters_are_refused)
{
    static const uint64_t bad[] = { UINT64_MAX, (uint64_t)INT64_MAX, (uint64_t)INT64_MIN, INT64_MAX / 2 + 1 };
    model a = model_in(w), b = model_new(2);
    const char *path = in_format("a");
    train(&a, 1);
    train(&b, 2);
    weft_stream *s = weft_stream_of(a.w, "data");
    uint64_t count = s->count, draw = a.w->random.draw;
    uint32_t state = state_of(&b);
    for (int i = 0; i < COUNT(bad); i++) {
        a.w->random.draw = bad[i];
        DOES(weft_save(path, a.m, a.o, NULL, 0));
        REFUSES(weft_load(path, b.m, b.o, NULL, 0), WEFT_EFORMAT, "streams/draw is damaged");
        a.w->random.draw = draw;
        s->count = bad[i];
        DOES(weft_save(path, a.m, a.o, NULL, 0));
        REFUSES(weft_load(path, b.m, b.o, NULL, 0), WEFT_EFORMAT, "streams/0 is damaged");
        s->count = count;
        cr_assert_eq(state_of(&b), state);
    }
    DOES(weft_save(path, a.m, a.o, NULL, 0));
    DOES(weft_load(path, b.m, b.o, NULL, 0));
    cr_assert_eq(state_of(&a), state_of(&b));
    CLEAN(b.w);
}

/* ---- an earlier version ---- */
/* A file of an earlier version: weights, buffer, optimiser, random stream, a loader's position. */
static void read_old(const char *path)
{
    enum { N = 40, CLASSES = 8 };
    static const int32_t next[] = { 34, 29, 11, 32 };
    static const weft_real bias[CLASSES] = { 0x1.eed42ap-4, 0x1.806ae4p-5, 0x1.a00678p-3,  0x1.62ab14p-5,
                                             0x1.cc7fc6p-3, 0x1.418ba2p-3, -0x1.628936p-2, 0x1.c88582p-5 };
    int32_t len[N];
    weft *w = weft_open(&(weft_opts){ .device = WEFT_REF, .seed = 3 });
    weft_module *m = weft_module_new(w, "net");
    weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = CLASSES, .columns = 4 });
    weft_lstm_new(m, "lstm", &(weft_rnn_opts){ .input = 4, .hidden = 3, .bidirectional = true });
    weft_linear_new(m, "out", &(weft_linear_opts){ .in = 6, .out = CLASSES });
    weft_tensor *kept = weft_buffer(m, "kept", WEFT_SHAPE(2));
    weft_optim *adam = weft_adam_new(m, &(weft_adam_opts){ .lr = 1e-2 });
    for (int i = 0; i < N; i++)
        len[i] = 1 + i * 7 % 9;
    weft_loader *loader = weft_loader_new(w, "train", N, len, &(weft_loader_opts){ .count = 4, .pool = 3 });
    weft_loader_state at;
    DOES(weft_load(path, m, adam, &(weft_checkpoint_item){ "loader", WEFT_I64, at.at, 4 }, 1));
    weft_loader_set_state(loader, at);
    OK(w);
    cr_assert(weft_optim_steps(adam) == 6 && numbers(kept)[1] == 6);
    cr_assert_eq(weft_stream_next(weft_stream_of(w, "mine")), 0x40be8c7508c3ca58u);
    int64_t n;
    const int32_t *pick = weft_loader_next(loader, &n);
    cr_assert(n == COUNT(next) && !memcmp(pick, next, sizeof next));
    same_bits("out.bias", numbers(weft_find_parameter(m, "out.bias")), bias, CLASSES);
    weft_close(w);
}

Test(checkpoint_files, files_of_earlier_versions_are_read)
{
    if (sizeof(weft_real) == 8)
        return;                                  /* the files contain floats */
    read_old(golden_path("checkpoint_0_1.weft"));
    read_old(golden_path("checkpoint_0_2.safetensors"));
}

/* ---- threads, and the program's own use of HDF5 ---- */
static char shared_path[4][160];
static void *save_and_load(void *number)
{
    int n = *(int *)number;
    weft *w = weft_open(&(weft_opts){ .device = WEFT_CPU, .seed = (uint64_t)n, .threads = 1 });
    weft_module *m = weft_module_new(w, "m");
    weft_tensor *x = weft_parameter(m, "x", WEFT_SHAPE(50), (weft_init){ WEFT_INIT_UNIFORM, 0, 1 });
    weft_real before[50], after[50], zeros[50] = { 0 };
    bool good = read_status(x, before, sizeof before) == WEFT_OK;
    for (int i = 0; i < 20 && good; i++) {
        good = weft_save(shared_path[n % 2], m, NULL, NULL, 0) == WEFT_OK &&
               weft_save(shared_path[2 + n % 2], m, NULL, NULL, 0) == WEFT_OK;
        weft_assign_values(x, zeros, 50);
        good = good && weft_load(shared_path[n % 2], m, NULL, NULL, 0) == WEFT_OK &&
               read_status(x, after, sizeof after) == WEFT_OK && !memcmp(before, after, sizeof after);
        good = good && weft_load("no such file", m, NULL, NULL, 0) == WEFT_ENOENT &&
               strstr(weft_file_message(), "no such file");
    }
    weft_close(w);
    return good ? number : NULL;
}

FILE_TEST(checkpoint_files, several_threads_save_in_parallel)
{
    pthread_t t[2];
    int number[2] = { 0, 1 };
    for (int i = 0; i < 4; i++)                  /* 0, 1: a file each; 2, 3: the same one */
        snprintf(shared_path[i], sizeof *shared_path, "%s", in_folder(i == 0 ? "0" : i == 1 ? "1" : "both"));
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, save_and_load, &number[i]);
    for (int i = 0; i < 2; i++) {
        void *good;
        pthread_join(t[i], &good);
        cr_assert_not_null(good);
    }
    cr_assert_eq(files_in_folder(), 3);
}

static herr_t loud(hid_t stack, void *user) { (void)stack; ++*(int *)user; return 0; }
FILE_TEST(checkpoint_files, settings_of_libhdf5_are_unchanged)
{
    model a = model_in(w);
    int heard = 0;
    unsigned before = 0, after = 0;
    H5E_auto2_t fn;
    void *user;
    const char *path = in_folder("own"), *ours = in_folder("a.h5");
    H5PLget_loading_state(&before);
    H5Eset_auto2(H5E_DEFAULT, loud, &heard);
    hid_t own = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    DOES(weft_save(ours, a.m, NULL, NULL, 0));
    REFUSES(weft_load(ours, a.m, a.o, NULL, 0), WEFT_EFORMAT, "no optimiser");
    REFUSES(weft_load_weights(ours, a.m, NULL, NULL), WEFT_EFORMAT, "checkpoint");
    H5Eget_auto2(H5E_DEFAULT, &fn, &user);
    H5PLget_loading_state(&after);
    cr_assert(heard == 0 && fn == loud && user == &heard && before == after);
    cr_assert(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 1 && H5Fclose(own) >= 0);
}
