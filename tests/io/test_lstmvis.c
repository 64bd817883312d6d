/* test_lstmvis.c - a bundle for LSTMVis: read back as its server does, by libhdf5 and a parser of words at
 * blanks; whole or not at all; what is refused. */
#include <dirent.h>
#include <hdf5.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/core/comma.h"

enum { TOKENS = 6, WORDS = 5 };
static char home[64], folder[80];
static const char *const word[WORDS] = { "the", "a b\n", "\\", "\xC3\xA9\xFF\xC2\xA0", "" };
static const int32_t ids[TOKENS] = { 0, 1, 2, 3, 4, 0 };
static const weft_real c[TOKENS * 2] = { 0, -2.5, 1, 0.5, -0.25, 3, 4, 5, 6, 7, 8, -0.125 };
static const weft_real h[TOKENS * 3] = { 0.5, -0.5, 0.25 };
static weft_lstmvis_states states[2];

static weft_lstmvis begin(void)
{
    snprintf(home, sizeof home, "%s/weft_lstmvis.XXXXXX", P_tmpdir);
    cr_assert_not_null(mkdtemp(home));
    snprintf(folder, sizeof folder, "%s/bundle", home);
    states[0] = (weft_lstmvis_states){ .units = 2, .values = c };
    states[1] =
        (weft_lstmvis_states){ .path = "h-of_2", .layer = 2, .output = true, .units = 3, .values = h };
    return (weft_lstmvis){ .name = "two \"words\"\n\xC3\xA9\xF0\x9F\x98\x80\x01\xFF",
                           .description = "c: # and h",
                           .tokens = TOKENS,
                           .ids = ids,
                           .words = WORDS,
                           .word = word,
                           .n = 2,
                           .states = states };
}

static int files_in(const char *where)
{
    int n = 0;
    DIR *d = opendir(where);
    cr_assert(d, "%s", where);
    for (struct dirent *e; (e = readdir(d)); )
        n += *e->d_name != '.';
    closedir(d);
    return n;
}

static char *text_of(const char *name)           /* to be freed */
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = calloc(100000, 1);
    cr_assert(fread(text, 1, 99999, f) < 99999);
    fclose(f);
    return text;
}

static void remove_all(void)
{
    static const char *const files[] = { "states.h5", "train.h5", "words.dict", "lstm.yml", "" };
    char path[200];
    for (int i = 0; i < COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        remove(path);
    }
    cr_assert_eq(rmdir(home), 0, "something else is left in %s", home);
}

/* The numbers of a set, of that type and extents, as h5py sees them. */
static void read_set(const char *file, const char *set, hid_t type, hsize_t rows, hsize_t columns, void *out)
{
    char path[200];
    hsize_t size[2] = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, file);
    hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), d = H5Dopen2(f, set, H5P_DEFAULT);
    cr_assert(f >= 0 && d >= 0, "%s has no %s", path, set);
    hid_t space = H5Dget_space(d), is = H5Dget_type(d);
    cr_assert_eq(H5Sget_simple_extent_ndims(space), columns ? 2 : 1);
    H5Sget_simple_extent_dims(space, size, NULL);
    cr_assert(size[0] == rows && size[1] == columns && H5Tequal(is, type) > 0, "%s: %s is another", path,
              set);
    cr_assert(H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
    H5Tclose(is), H5Sclose(space), H5Dclose(d), H5Fclose(f);
}

Test(lstmvis, a_bundle)
{
    weft_lstmvis b = begin();
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_OK, "%s", weft_file_message());
    cr_assert(files_in(folder) == 4 && files_in(home) == 1);
    float got[TOKENS * 3];
    int32_t got_ids[TOKENS];
    read_set("states.h5", "state1", H5T_IEEE_F32LE, TOKENS, 2, got);
    for (int i = 0; i < TOKENS * 2; i++)
        cr_assert_eq((double)got[i], (double)c[i]);
    read_set("states.h5", "h-of_2", H5T_IEEE_F32LE, TOKENS, 3, got);
    cr_assert(got[0] == .5f && got[1] == -.5f && got[2] == .25f && got[3] == 0);
    read_set("train.h5", "word_ids", H5T_STD_I32LE, TOKENS, 0, got_ids);
    cr_assert_arr_eq(got_ids, ids, sizeof ids);
    char *words = text_of("words.dict"), *config = text_of("lstm.yml");
    cr_assert_str_eq(words, "the 0\n"
                            "a\xE2\x90\xA3" "b\\n 1\n"
                            "\\\\ 2\n"
                            "\xC3\xA9\\xff\\xc2\\xa0 3\n"
                            "\\e 4\n");
    cr_assert_str_eq(config, "# written by weft_write_lstmvis\n"
                             "name: \"two \\\"words\\\"\\x0A\\u00E9\\U0001F600\\x01\\uFFFD\"\n"
                             "description: \"c: # and h\"\n\n"
                             "files:\n  states: states.h5\n  word_ids: train.h5\n  words: words.dict\n\n"
                             "word_sequence:\n  file: word_ids\n  path: word_ids\n  dict_file: words\n\n"
                             "states:\n  file: states\n  types: [\n"
                             "    {type: state, layer: 1, path: \"state1\"},\n"
                             "    {type: output, layer: 2, path: \"h-of_2\", transform: none}\n"
                             "  ]\n");
    free(words);
    free(config);
    remove_all();
}

Test(lstmvis, bytes_are_words_that_are_told_apart)
{
    weft_lstmvis b = begin();
    b.word = NULL, b.words = 0, b.description = NULL;
    comma_begin();
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_OK, "%s", weft_file_message());
    comma_end();
    char *text = text_of("words.dict"), *at = text, seen[256][8];
    for (int i = 0; i < 256; i++) {
        int id = -1, n = 0;
        cr_assert_eq(sscanf(at, "%7s %d%n", seen[i], &id, &n), 2, "%.20s", at);
        cr_assert(id == i && at[n] == '\n' && strcspn(at, " ") == strlen(seen[i]), "line %d: %.20s", i, at);
        for (int k = 0; k < i; k++)
            cr_assert_str_neq(seen[k], seen[i]);
        at += n + 1;
    }
    cr_assert_str_eq(seen['x'], "x");
    cr_assert_str_eq(seen[0], "\\x00");
    cr_assert_str_eq(seen[0xC3], "\\xc3");
    cr_assert(*at == 0);
    free(text);
    remove_all();
}

Test(lstmvis, a_bundle_is_replaced_and_nothing_else)
{
    weft_lstmvis b = begin();
    char path[200], link_[100];
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_OK);
    b.name = "second";
    strcat(folder, "//");
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_OK, "%s", weft_file_message());
    char *config = text_of("lstm.yml");
    cr_assert(strstr(config, "name: \"second\"") && files_in(folder) == 4 && files_in(home) == 1);
    free(config);
    snprintf(link_, sizeof link_, "%s/link", home);
    cr_assert_eq(symlink("bundle", link_), 0);
    b.name = "third";
    cr_assert_eq(weft_write_lstmvis(link_, &b), WEFT_OK, "%s", weft_file_message());
    config = text_of("lstm.yml");
    cr_assert(strstr(config, "name: \"third\"") && unlink(link_) == 0, "a link is followed");
    free(config);
    snprintf(path, sizeof path, "%s/notes", folder);
    fclose(fopen(path, "w"));
    b.name = "fourth";
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_EIO);
    cr_assert(strstr(weft_file_message(), "holds something that weft did not write, notes"), "%s",
              weft_file_message());
    config = text_of("lstm.yml");
    cr_assert(strstr(config, "name: \"third\"") && files_in(folder) == 5 && files_in(home) == 1);
    free(config);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(weft_write_lstmvis("/no/such/folder/bundle", &b), WEFT_EIO);
    cr_assert(strstr(weft_file_message(), "/no/such/folder/bundle cannot be written: No such file"), "%s",
              weft_file_message());
    snprintf(path, sizeof path, "%s/lstm.yml", folder);
    cr_assert_eq(weft_write_lstmvis(path, &b), WEFT_EIO, "that is a file");
    remove_all();
}

static void put(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "w");
    cr_assert(to && fputs(text, to) >= 0 && fclose(to) == 0);
}

/* Names prove nothing: a folder of the user with files or folders of these names is refused, and stays. */
Test(lstmvis, a_folder_of_the_user_is_never_replaced)
{
    static const char *const files[] = { "states.h5", "train.h5", "words.dict", "lstm.yml" };
    weft_lstmvis b = begin();
    char path[200], *text;
    for (int kind = 0; kind < 5; kind++) {
        cr_assert_eq(mkdir(folder, 0700), 0);
        for (int i = 0; i < 4; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, files[i]);
            if (kind == 0 && i == 1)             /* a folder */
                cr_assert_eq(mkdir(path, 0700), 0);
            else if (kind == 1 && i == 0)        /* a link */
                cr_assert_eq(symlink("../elsewhere", path), 0);
            else if (kind != 2 || i == 1)        /* 2: only one file; 3: all files, but no mark */
                put(files[i], i == 3 && kind < 2 ? "# written by weft_write_lstmvis\n" : "precious");
        }
        if (kind == 4)                           /* a bundle of weft's with the user's file in place of one */
            put("lstm.yml", "# written by weft_write_lstmvis\n"), put(".mine", "precious");
        int n = files_in(folder);
        cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_EIO, "kind %d", kind);
        cr_assert(strstr(weft_file_message(), "weft did not write") ||
                      strstr(weft_file_message(), "not written by weft"),
                  "%s", weft_file_message());
        cr_assert(files_in(folder) == n && files_in(home) == 1);
        text = kind ? text_of("train.h5") : NULL;
        cr_assert(!text || !strcmp(text, "precious"));
        free(text);
        char command[200];
        snprintf(command, sizeof command, "rm -r '%s'", folder);
        cr_assert_eq(system(command), 0);
    }
    cr_assert(mkdir(folder, 0700) == 0);
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_OK, "an empty folder is replaced");
    cr_assert(files_in(folder) == 4 && files_in(home) == 1);
    remove_all();
}

/* A limit of the file's size, below each of the four in turn: what was there stays, and nothing beside it. */
Test(lstmvis, a_full_disk_leaves_the_old_bundle)
{
    weft_lstmvis b = begin();
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_OK);
    b.name = "second";
    static const rlim_t most[] = { 10, 2000, 2200 };
    int failed = 0;
    for (int i = 0; i < COUNT(most); i++) {
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ most[i], RLIM_INFINITY }), 0);
        weft_status s = weft_write_lstmvis(folder, &b);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
        char *config = text_of("lstm.yml");
        cr_assert(s == WEFT_OK || (s == WEFT_EIO && strstr(config, "two") && !strstr(config, "second")), "%d",
                  (int)s);
        cr_assert(files_in(folder) == 4 && files_in(home) == 1);
        failed += s != WEFT_OK;
        free(config);
    }
    cr_assert(failed >= 2, "%d", failed);
    remove_all();
}

#define REFUSED(kind, part)                                                                              \
    do {                                                                                                 \
        cr_assert_eq(weft_write_lstmvis(folder, &b), kind, "taken: %s", part);                           \
        cr_assert(strstr(weft_file_message(), part), "\"%s\" lacks \"%s\"", weft_file_message(), part);    \
        cr_assert_eq(files_in(home), 0);                                                                 \
        rmdir(home);                                                                                     \
        b = begin();                                                                                     \
    } while (0)

Test(lstmvis, refused)
{
    weft_lstmvis b = begin();
    const int32_t far[] = { 0, 1, 5, 0, 0, 0 }, negative[] = { -1, 0, 0, 0, 0, 0 };
    weft_real odd[TOKENS * 2] = { 0 };
    b.name = NULL;                               REFUSED(WEFT_EARG, "a bundle with a name");
    b.n = 0;                                     REFUSED(WEFT_EARG, "one set of states at least");
    b.states = NULL;                             REFUSED(WEFT_EARG, "one set of states at least");
    b.tokens = 0;                                REFUSED(WEFT_EARG, "0 tokens");
    b.ids = NULL;                                REFUSED(WEFT_EARG, "ids is NULL");
    b.ids = far;                                 REFUSED(WEFT_EARG, "id 5 of token 2; ids of words, 0 .. 4");
    b.ids = negative;                            REFUSED(WEFT_EARG, "id -1 of token 0");
    b.words = -1;                                REFUSED(WEFT_EARG, "-1 words");
    b.word = NULL;                               REFUSED(WEFT_EARG, "5 words, word is NULL");
    b.word = (const char *[WORDS]){ "a", "b" };  REFUSED(WEFT_EARG, "word 2 is NULL");
    states[0].path = "a/b";                      REFUSED(WEFT_EARG, "states 0: path \"a/b\"");
    states[0].path = "";                         REFUSED(WEFT_EARG, "states 0: path \"\"");
    states[0].path = "h-of_2";
    REFUSED(WEFT_EARG, "states 0 and 1 have the same path, \"h-of_2\"");
    states[1].layer = -1;                        REFUSED(WEFT_EARG, "states \"h-of_2\": layer -1");
    states[1].units = 0;                         REFUSED(WEFT_EARG, "0 units");
    states[1].units = INT64_MAX;                 REFUSED(WEFT_EARG, "units");
    states[0].values = NULL;
    REFUSED(WEFT_EARG, "states \"state1\": layer 0, 2 units, values is NULL");
    odd[5] = (weft_real)NAN, states[0].values = odd;
    REFUSED(WEFT_ENUMERIC, "states \"state1\": nan for token 2, unit 1");
    odd[5] = (weft_real)(sizeof(weft_real) == 8 ? 1e300 : (double)INFINITY), states[0].values = odd;
    REFUSED(WEFT_ENUMERIC, "for token 2, unit 1; finite numbers of a float32");
    cr_assert_eq(weft_write_lstmvis(NULL, &b), WEFT_EARG);
    cr_assert_eq(weft_write_lstmvis("", &b), WEFT_EARG);
    cr_assert_eq(weft_write_lstmvis(folder, NULL), WEFT_EARG);
    cr_assert_eq(rmdir(home), 0);
}

/* The states of a model over a text: what weft_read_sequences gives goes in as it is. */
Test(lstmvis, states_of_a_layer)
{
    weft_lstmvis b = begin();
    weft *w = open_on(WEFT_BEST);
    weft_module *m = weft_module_new(w, "net");
    weft_embedding *embed =
        weft_embedding_new(m, "embed", &(weft_embedding_opts){ .rows = WORDS, .columns = 4 });
    weft_rnn *lstm = weft_lstm_new(m, "lstm", &(weft_rnn_opts){ .input = 4, .hidden = 3 });
    const int32_t len[] = { 2, 0, 4 };
    weft_tensor *y =
        weft_rnn_run(
            lstm, weft_embedding_run(embed, weft_ragged_ints(w, ids, &(weft_lengths){ .n = 3, .len = len })),
            WEFT_ZERO_STATE)
            .y;
    weft_real values[TOKENS * 3];
    weft_read_sequences(y, values, sizeof values);
    OK(w);
    b.n = 1;
    b.states = &(weft_lstmvis_states){ .output = true, .units = 3, .values = values };
    cr_assert_eq(weft_write_lstmvis(folder, &b), WEFT_OK, "%s", weft_file_message());
    float got[TOKENS * 3];
    read_set("states.h5", "output1", H5T_IEEE_F32LE, TOKENS, 3, got);
    for (int i = 0; i < TOKENS * 3; i++)
        cr_assert(got[i] == (float)values[i] && got[i] != 0);
    CLEAN(w);
    remove_all();
}
