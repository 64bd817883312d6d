/* seeds.c - writes the valid files that fuzzing starts from to FOLDER/READER/ (usage: seeds FOLDER). The
 * first byte of a file holds the options of its program. */
#include <dirent.h>
#include <sys/stat.h>
#include "weft_forecast.h"
#include "weft_lab.h"
#include "fuzz.h"
#include "tests/halves.h"

static const char *folder;
static char scratch[600];

void fuzz_found(const char *kind, const char *format, ...)
{
    fprintf(stderr, "seeds: %s: %s: %s\n", kind, format, weft_file_message());
    exit(1);
}
#define DOES(status) do { if (status) fuzz_found("trouble", #status); } while (0)

/* ---- files ---- */
static void seed(const char *reader, const char *name, int options, const void *bytes, size_t n)
{
    char path[900];
    snprintf(path, sizeof path, "%s/%s", folder, reader);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s.%02x", folder, reader, name, (unsigned)options);
    FILE *f = fopen(path, "wb");
    bool good = f && (options < 0 || fputc(options, f) != EOF) && fwrite(bytes, 1, n, f) == n;
    if (!f || fclose(f) || !good)
        fuzz_found("trouble", "%s", path);
}
static void text(const char *reader, const char *name, int options, const char *is)
{
    seed(reader, name, options, is, strlen(is));
}

static void take_file(const char *path, const char *reader, const char *name, int options)
{
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (!n || fclose(f))
        fuzz_found("trouble", "%s", path);
    seed(reader, name, options, bytes, n);
}
/* content of the scratch file */
static void take(const char *reader, const char *name, int options)
{
    take_file(scratch, reader, name, options);
}

/* Takes files that other programs wrote, of at most 30,000 bytes. */
static void interchange(void)
{
    const char *golden = "tests/golden/interchange";
    DIR *d = opendir(golden);
    for (struct dirent *e; d && (e = readdir(d)); ) {
        char path[300];
        struct stat s;
        snprintf(path, sizeof path, "%s/%.250s", golden, e->d_name);
        if (stat(path, &s) || !S_ISREG(s.st_mode) || !s.st_size || s.st_size > 30000)
            continue;
        take_file(path, "weights", e->d_name, !!strstr(path, "parts"));
        if (strstr(path, "tensor.pt"))
            take_file(path, "planted_weights", e->d_name, 0);
    }
    if (d)
        closedir(d);
}

static int32_t next_int(const uint8_t **p)
{
    int32_t n;
    memcpy(&n, *p, sizeof n);
    *p += sizeof n;
    return n;
}

/* Takes the models of a golden file (tests/onnx/models.h), without the values of each. */
static void models(const char *path)
{
    static uint8_t all[1 << 20];
    FILE *f = fopen(path, "rb");
    const uint8_t *p = all, *end = all + (f ? fread(all, 1, sizeof all, f) : 0);
    if (end == all || fclose(f))
        fuzz_found("trouble", "%s", path);
    while (p < end) {
        char name[64] = "";
        int32_t n = next_int(&p);
        snprintf(name, sizeof name, "%.*s.onnx", n, (const char *)p);
        p += n;
        n = next_int(&p);
        seed("onnx", name, -1, p, (size_t)n);
        if (strstr(name, "ragged"))
            seed("planted_onnx", name, -1, p, (size_t)n);
        seed("weights", name, 0, p, (size_t)n);
        p += n;
        for (int values = next_int(&p), outputs = next_int(&p); values + outputs > 0; values--) {
            next_int(&p);
            n = 1;
            for (int32_t rank = next_int(&p); rank--;)
                n *= next_int(&p);
            p += 4 * n;
        }
    }
}

/* Writes a set like other programs. how: 0, contiguous; 1, in chunks of 2 x 3; 2 and more, also gzip; 3,
 * also shuffled; 5, extendible along one axis; 6, along both. */
static void put(hid_t file, const char *name, hid_t type, int rank, hsize_t n, hsize_t columns, int how)
{
    hsize_t size[] = { n, columns }, chunk[] = { n < 2 ? n : 2, columns < 3 ? columns : 3 },
            most[] = { how > 4 ? H5S_UNLIMITED : n, how > 5 ? H5S_UNLIMITED : columns };
    static const double few[] = { 1, -2, .5, 4, 100, -.25 };
    double values[200];
    for (int i = 0; i < COUNT(values); i++)
        values[i] = strstr(name, "lengths") ? (double)n : how ? few[i % COUNT(few)] : .5 * i;
    hid_t space = H5Screate_simple(rank, size, most), links = H5Pcreate(H5P_LINK_CREATE),
          list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    if (how)
        H5Pset_chunk(list, rank, chunk);
    if (how == 3)
        H5Pset_shuffle(list);
    if (how > 1)
        H5Pset_deflate(list, 6);
    hid_t it = H5Dcreate2(file, name, type, space, links, list, H5P_DEFAULT);
    DOES(it < 0 || H5Dwrite(it, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0);
    H5Dclose(it), H5Sclose(space), H5Pclose(links), H5Pclose(list);
}

/* Creates a file in libhdf5's first format, that of 1.8, or the latest. */
static hid_t others(int age)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (age)
        H5Pset_libver_bounds(list, age == 1 ? H5F_LIBVER_V18 : H5F_LIBVER_LATEST,
                             age == 1 ? H5F_LIBVER_V18 : H5F_LIBVER_LATEST);
    hid_t file = H5Fcreate(scratch, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    H5Pclose(list);
    return file;
}

/* ---- each reader ---- */
static void checkpoints(const model *k)
{
    extras e = said;
    weft_checkpoint_item items[ITEMS];
    model_items(&e, items);
    DOES(weft_save(scratch, k->m, k->o, items, ITEMS));
    for (int reader = 0; reader < READERS; reader++)
        for (int seal = PLAIN; seal <= REPAIRED; seal++)
            take("checkpoint", "model", seal + SEALS * reader);
    weft_module *small = weft_module_new(k->w, "small");
    weft_parameter(small, "x", WEFT_SHAPE(2), (weft_init){ WEFT_INIT_CONSTANT, 1, 0 });
    DOES(weft_save(scratch, small, NULL, items, ITEMS));
    for (int reader = 2; reader < READERS; reader++)
        for (int seal = PLAIN; seal <= REPAIRED; seal++)
            take("checkpoint", "small", seal + SEALS * reader);
}

static void state_dicts(const model *k)
{
    static const struct { const char *name; int how; bool nested, half; } all[] = {
        { "flat", 0, false, false }, { "flat_new", 0, false, false },  { "nested", 0, true, false },
        { "nested_new", 0, true, false }, { "half", 0, false, true },  { "chunks", 1, false, true },
        { "gzip", 2, false, true },  { "shuffled", 3, false, true },
        { "array", 4, false, true }, { "growing", 5, false, true }, { "tree", 6, false, true },
    };
    hid_t types[] = { H5T_IEEE_F32BE, H5T_IEEE_F64LE, half_type(false, false),
                      half_type(true, false) };
    DOES(weft_save_weights(scratch, k->m));
    take("state_dict", "ours", 0);
    take("state_dict", "ours", 1);
    for (int i = 0; i < COUNT(all); i++) {
        hid_t file = others(all[i].how > 3 ? 2 : i & 1);
        for (int p = 0; p < weft_parameter_count(k->m); p++) {
            char path[200];
            const char *name;
            weft_tensor *x = weft_parameter_at(k->m, p, &name);
            snprintf(path, sizeof path, "%s", name);
            for (char *dot = path; all[i].nested && (dot = strchr(dot, '.')); )
                *dot = '/';
            put(file, path, types[!all[i].half ? p % 2 : all[i].how ? p % 4 : 2 + p % 2], weft_rank(x),
                (hsize_t)weft_size(x, 0), weft_rank(x) > 1 ? (hsize_t)weft_size(x, 1) : 1, all[i].how);
        }
        put(file, "state", H5T_IEEE_F64BE, 1, 3, 1, 0);
        put(file, "empty", H5T_IEEE_F32LE, 1, 0, 1, 0);
        H5Fclose(file);
        take("state_dict", all[i].name, i & 1);
    }
    H5Tclose(types[2]), H5Tclose(types[3]);
}

static void ragged(void)
{
    int32_t len[] = { 3, 0, 2 }, tokens[] = { 1, 2, 3, 4, 5 };
    weft_real rows[] = { 1, 2, 3, 4, 5, -6, 7, 8, NAN, 10 };
    const weft_dataset ints = { .n = 3, .len = len, .ints = tokens },
                       reals = { .n = 3, .columns = 2, .len = len, .rows = rows };
    DOES(weft_write_hdf5(&ints, scratch, NULL));
    take("ragged", "tokens", 0);
    DOES(weft_write_hdf5(&reals, scratch, "g"));
    take("ragged", "rows", 1);
    hid_t types[] = { H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE };
    for (int i = 0; i < 6; i++) {
        hid_t file = others(i % 2);
        put(file, "lengths", types[i % 3], 1, 2, 1, 0);
        put(file, i < 3 ? "rows" : "tokens", i < 3 ? i ? H5T_IEEE_F64LE : H5T_IEEE_F64BE : H5T_STD_I32LE,
            i < 3 ? 2 : 1, 4, 3, 0);
        H5Fclose(file);
        take("ragged", (const char *[]){ "a", "b", "c", "d", "e", "f" }[i], 0);
    }
    for (int i = 0; i < 12; i++)
        seed("lengths", (const char *[]){ "a", "b", "c", "d" }[i % 4], i * 9,
             "\3\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\0\0\0\0", (size_t)(24 - 8 * (i % 4 % 3)));
}

static void plans(void)
{
    static const char *const words[] = {
        "order:count=3", "sorted:count=3,lookahead=5", "random:count=2,seed=5",
        "pool:count=2,pool=3,shuffle=yes", "pool:tokens=90", "laplace:count=4,pool=3",
        "tokens:budget=200,multiple=4,sort=no", "buckets:bounds=5/10/20,sizes=6/4/3/2",
        "geometric:budget=100,ratio=1.5,least=4", "optimal_buckets:k=4,count=5",
        "powers:budget=64,shuffle=yes", "next_fit:capacity=128", "first_fit:capacity=128,rows=3,limit=2",
        "best_fit:capacity=128,open=4,rows=2,shuffle=yes", "worst_fit:capacity=128,limit=3",
        "best_fit_decreasing:capacity=128,rows=4,lookahead=30", "spfhp:capacity=128",
        "spfhp_stacked:capacity=128", "lpfhp:capacity=128", "exact_fill:capacity=128",
        "column_generation:capacity=128", "chunk:capacity=16,rows=5,carry=yes",
        "best_fit_split:capacity=20,rows=4", "refill:slots=4,longest_first=yes",
        "streams:slots=4,window=10", "fold", "balance:ranks=3,method=kk",
        "modified_first_fit_decreasing:capacity=128,align=8", "greedy_knapsack:capacity=128,extra=2",
        "worst_fit:capacity=64,squares=900,longer=split", "balance:ranks=3,per_square=.5,align=4"
    };
    for (int i = 0; i < COUNT(words); i++) {
        char name[16], bytes[160];
        snprintf(name, sizeof name, "p%d", i);
        int n = snprintf(bytes, sizeof bytes, "%s\n%.*s", words[i], 4 + i,
                         "\7\3\5\2\10\1\4\6 abcdefghijklmnopqrstuvwxyz");
        seed("planners", name, 0, bytes, (size_t)n);
    }
}

static void frames(void)
{
    weft_frame f = { 0 };
    const double x[] = { 1, 2, 3 }, y[] = { 10, INFINITY, 1e300 };
    for (int i = 0; i < 3; i++)
        DOES(weft_frame_add(&f, (const char *[]){ "a", "second series", "c" }[i], WEFT_NAMES("x", "y"),
                            (const double *const[]){ x, y }, i));
    DOES(weft_frame_write_hdf5(&f, scratch, "g"));
    take("frame", "ours", 1);
    DOES(weft_frame_write_hdf5(&f, scratch, NULL));
    take("frame", "ours", 0);
    weft_frame_free(&f);
    for (int i = 0; i < 2; i++) {
        hid_t file = others(i);
        put(file, "x", i ? H5T_STD_U8LE : H5T_IEEE_F32BE, 1, 5, 1, 0);
        put(file, "y", i ? H5T_IEEE_F64LE : H5T_STD_I64LE, 1, 5, 1, 0);
        H5Fclose(file);
        take("frame", i ? "new" : "old", 0);
    }
}

static void csv(void)
{
    text("csv", "plain", 0, "id,x,y\na,1,2\na,3,4.5e3\nb,-5,nan\n");
    text("csv", "quotes", 0,
         "\xEF\xBB\xBF"
         "note,\"id\",y,x\r\n\"one, \"\"two\"\"\nthree\",a,1,2\r\n,a,-.5e1,4\n\nx,\"b\",\" 6\",\"0x10 \"");
    text("csv", "gaps", 3, "id;x;y\na;;2\na;3;\n");
    text("csv", "mixed", 4, "id,x,y\na,1,2\nb,3,4\na,5,6\n,7,8\n");
    text("csv", "whole", 14, "x,y\n1,2\n,4\n5,6\n");
    text("csv", "frame", 6, "id,x,y\na,,2\nb,3,\n");
    text("csv", "fix", 20, "id,x,y\na,1,2\nb,3,4\n");
    text("text", "lines", -1, "ab\n\nxyz\r\nlast");
    text("planted", "lines", -1, "WAB\nWEB");
}

int main(int n, char **argument)
{
    if (n != 2)
        return 2;
    folder = argument[1];
    mkdir(folder, 0777);
    snprintf(scratch, sizeof scratch, "%s/scratch.h5", folder);
    model k = model_new(1);
    checkpoints(&k);
    state_dicts(&k);
    ragged();
    frames();
    plans();
    csv();
    interchange();
    models("tests/golden/interchange/onnx/models.bin");
    models("tests/golden/interchange/onnx/nodes.bin");
    remove(scratch);
    weft_close(k.w);
    return 0;
}
