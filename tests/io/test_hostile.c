/* test_hostile.c - tests files that are made to harm a reader, one a row. Each is refused within a second, in
 * little memory, with a message that has the format, the place and the reason. No weight changes. */
#include "archives.h"
#include "sets.h"
#include "tests/failing_malloc.h"
#include "tests/onnx/models.h"

typedef struct row {
    const char *format, *says; /* place and reason */
    content (*make)(const struct row *);
    const char *text;
    size_t n;
    void (*fill)(hid_t);
} row;

/* ---- bytes ---- */
static content copy_of(const void *bytes, size_t n)
{
    return lent((content){ memcpy(calloc(n + 1, 1), bytes, n), n });
}
static content bytes(const row *r) { return copy_of(r->text, r->n); }
static content golden(const row *r) { return read_bytes(sample(r->text)); }
#define BYTES(format, text, says)  { format, says, bytes, text, sizeof text - 1, NULL }
#define GOLDEN(format, name, says) { format, says, golden, name, 0, NULL }

/* A header of safetensors, its length before it, and n bytes of numbers. */
static content safetensors(const row *r)
{
    size_t length = strlen(r->text);
    content file = { calloc(8 + length + r->n, 1), 8 + length + r->n };
    memcpy(zip_number(file.at, length, 8), r->text, length);
    return lent(file);
}
#define SAFE(header, n, says) { "safetensors", says, safetensors, header, n, NULL }
#define ITEM(name, size, at) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" size "],\"data_offsets\":[" at "]}"
#define X(size, at)           "{" ITEM("x", size, at)
#define AND(name, at)         "," ITEM(name, "1", at)

/* ---- NumPy ---- */
/* A .npy file with this header, and 12 bytes of numbers. */
static content npy(const row *r)
{
    size_t length = strlen(r->text);
    content file = { calloc(22 + length, 1), 22 + length };
    memcpy(file.at, "\x93NUMPY\1", 7);
    memcpy(zip_number(file.at + 8, length, 2), r->text, length);
    return lent(file);
}
#define NPY(header)  { "NumPy", "array has a wrong header; expected {'descr':", npy, header, 0, NULL }
#define SHAPE(shape) NPY(LIKE(shape))
#define LIKE(shape)  "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"

static member array_member(const char *name) /* one number, 0 */
{
    static char file[WEFT__NPY_HEADER + 8];
    weft__kind k = { WEFT__F64, 0, { 0 } };
    return (member){ name, file, weft__npy_header(&k, file) + 8, false };
}

/* An archive of kind n, with changed bytes: "L6=1 C8=1 E-9:35" sets byte 6 of the first local header, byte 8
 * of the first central header, and the four bytes from 9 before the end record. */
enum { ALONE, BOMB, KERAS_BOMB, TWICE, TEXT, OVERLAP, ZEROS = 32 << 20 };
static content zip(const row *r)
{
    char *zeros = r->n == BOMB || r->n == KERAS_BOMB ? calloc(ZEROS, 1) : NULL, part, how;
    member a = array_member("a.npy"), b = array_member("b.npy"), m[2] = { a, a };
    content hidden = lent(zip_new(&b, 1));
    long at, value;
    int length;
    if (zeros)
        m[0] = (member){ r->n == BOMB ? "a.npy" : "config.json", zeros, ZEROS, true };
    if (r->n == TEXT)
        m[1] = (member){ "b.txt", "text", 4, false };
    if (r->n == OVERLAP) { /* a.npy has b.npy and its header among its bytes */
        m[0] = (member){ "a.npy", hidden.at, ZIP_LOCAL + 5 + b.n, false };
        m[1] = b;
    }
    content file = zip_new(m, r->n < TWICE ? 1 : 2);
    unsigned char *end = file.at + file.n - ZIP_END, *central = memmem(file.at, file.n, "PK\1\2", 4);
    for (const char *p = r->text; sscanf(p, " %c%ld%c%ld%n", &part, &at, &how, &value, &length) == 4;) {
        unsigned char *from = part == 'L' ? file.at : part == 'C' ? central : end;
        zip_number(from + at, (uint64_t)value, how == ':' ? 4 : 1);
        p += length;
    }
    free(zeros);
    return lent(file);
}
#define ZIP(kind, changes, says) { kind == KERAS_BOMB ? "Keras" : "NumPy", says, zip, changes, kind, NULL }

/* ---- PyTorch ---- */
#if SIZE_MAX > UINT32_MAX
#define REPEATED "repeats its numbers more often than weft reads"
#else
#define REPEATED "ends after"
#endif

static content pickled(const void *code, size_t n)
{
    float numbers[4] = { 1, 2, 3, 4 };
    weft__turn(sizeof *numbers, numbers, sizeof numbers);
    const member m[] = { { "a/data.pkl", code, n, false }, { "a/data/0", numbers, 16, false } };
    return lent(zip_new(m, 2));
}
static content pickle(const row *r) { return pickled(r->text, r->n); }
static content marks(const row *r)
{
    char *code = memset(malloc(r->n), *r->text, r->n);
    content file = pickled(memcpy(code, "\x80\2", 2), r->n);
    free(code);
    return file;
}
static content lists(const row *r) /* each has the one before it four times: 4^n paths */
{
    char code[4096], *p = code + sprintf(code, "\x80\2]q\1");
    for (int i = 2; i < (int)r->n; i++)
        p += sprintf(p, "](h%ch%ch%ch%ceq%c", i - 1, i - 1, i - 1, i - 1, i);
    *p++ = '.';
    return pickled(code, (size_t)(p - code));
}
#define P                   "\x80\2"
#define PICKLED(code, says) { "PyTorch", says, pickle, P code, sizeof(P code) - 1, NULL }
#define OPCODE(code, says)  PICKLED(code, "data.pkl: opcode " says)
#define STORAGE             "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" "0X\3\0\0\0cpuK\4tQ"
#define VIEW(view, says)    PICKLED(TENSOR(view) ".", "tensor " says)
#define TENSOR(view)        "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE view "\x89}tR"

static content graph(const row *r) /* in n nodes If, one in the other */
{
    message g = graph_of(r->text);
    for (size_t depth = 0; depth < r->n; depth++) {
        message node = { .n = 0 }, attribute = { .n = 0 }, outer = graph_of("");
        put_name(&attribute, 1, "then_branch");
        put_part(&attribute, 6, &g);
        put_name(&node, 1, "x");
        put_name(&node, 2, "y");
        put_name(&node, 4, "If");
        put_part(&node, 5, &attribute);
        put_part(&outer, 1, &node);
        g = outer;
    }
    g = model_of(&g);
    return copy_of(g.at, g.n);
}
#define GRAPH(text, depth, says) { "ONNX", says, graph, text, depth, NULL }
#define ONNX "\x08\x08\x12\1t" /* the first fields of a model */

/* ---- HDF5 ---- */
/* A file with the weight b, and what `fill` adds. */
static content hdf5(const row *r)
{
    const char *path = in_folder("filled.h5");
    hid_t f = new_file(path);
    put_numbers(f, "a.b.bias", H5T_IEEE_F32LE, 2, 0, (double[]){ 1, 2 });
    r->fill(f);
    H5Fclose(f);
    return read_bytes(path);
}
static void put_weight(hid_t f, const char *name, hid_t type)
{
    put_numbers(f, name, type, 2, 3, (double[]){ 1, -2.5, 3, 1e-3, 0, -1e6 });
}
static void soft(hid_t f)
{
    put_weight(f, "x", H5T_IEEE_F32LE);
    H5Lcreate_soft("/x", f, "a.b.weight", 0, 0);
}
static void soft_group(hid_t f)
{
    put_weight(f, "x/b/weight", H5T_IEEE_F32LE);
    H5Lcreate_soft("/x", f, "a", 0, 0);
}
static void external(hid_t f) { H5Lcreate_external("elsewhere.h5", "/x", f, "a.b.weight", 0, 0); }
static void looped(hid_t f)
{
    for (int i = 0; i < 9; i++)
        H5Lcreate_hard(f, "/", f, (char[]){ 'l', (char)('0' + i), 0 }, 0, 0);
}
static void odd_float(hid_t f) /* of 24 bits */
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 23, 15, 8, 0, 15);
    H5Tset_size(type, 3);
    put_weight(f, "a.b.weight", type);
    H5Tclose(type);
}
static void unwritten(hid_t f) { put_numbers(f, "a.b.weight", H5T_IEEE_F32LE, 2, 3, NULL); }
static void outside(hid_t f) /* its numbers are in another file */
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, (hsize_t[]){ 2, 3 }, NULL);
    H5Pset_external(list, "somewhere", 0, H5F_UNLIMITED);
    H5Dclose(H5Dcreate2(f, "a.b.weight", H5T_IEEE_F32LE, space, 0, list, 0));
    H5Sclose(space);
    H5Pclose(list);
}
static void text_set(hid_t f)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    put_letters(f, "a.b.weight", type, NULL);
    H5Tclose(type);
}
static void ours(hid_t f)
{
    H5Gclose(H5Gcreate2(f, "parameters", 0, 0, 0));
    H5Gclose(H5Gcreate2(f, "streams", 0, 0, 0));
    put_weight(f, "a.b.weight", H5T_IEEE_F32LE);
}
#define H5(fill, says) { "", says, hdf5, NULL, 0, fill }

static content keras(const row *r) /* without weights if there is no `fill` */
{
    content h5 = r->fill ? hdf5(r) : copy_of("", 0);
    member m[] = { { "metadata.json", "{}", 2, false }, { "model.weights.h5", h5.at, h5.n, false } };
    return lent(zip_new(m, r->fill ? 2 : 1));
}
#define KERAS(fill, says) { "Keras", says, keras, NULL, 0, fill }

/* ---- the rows ---- */
static const row rows[] = {
    BYTES("safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", "the header has 18446744073709551615 bytes"),
    BYTES("safetensors", "\0\0\0\0\0\0\0\x80{}", "the header has 9223372036854775808 bytes"),
    SAFE(X("1", "0,4"), 4, "header, byte 61: found the end; expected '}'"),
    SAFE(X("1", "0,8") "}", 8, "x: data_offsets are 0 and 8; expected 4 bytes"),
    SAFE(X("1", "8,4") "}", 8, "x: data_offsets are 8 and 4; expected 4 bytes"),
    SAFE(X("1", "4,8") "}", 8, "numbers begin at offset 4; expected 0, without a hole"),
    SAFE(X("1", "0,4") "}", 8, "8 bytes follow the header; expected 4, as its offsets say"),
    SAFE(X("1", "0,4") AND("y", "0,4") "}", 4, "numbers begin at offset 0; expected 4, without an overlap"),
    SAFE(X("1", "0,4") AND("x", "4,8") "}", 8, "two arrays have the name x"),
    SAFE(X("4611686018427387904,4", "0,0") "}", 0, "x: data_offsets are 0 and 0; expected"),
    SAFE(X("9223372036854775808", "0,0") "}", 0, "header, byte 55: found '8'; expected a number below 2^63"),
    SAFE(X("-1", "0,0") "}", 0, "header, byte 37: found '-'; expected a whole number"),
    SAFE("{\"x\":{\"dtype\":\"Q7\",\"shape\":[]}}", 4, "header, byte 26: found ','; expected a dtype"),
    SAFE("{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 4, "header, byte 36: found '\"'; expected dtype"),
    SAFE("{\"x\":{\"shape\":[]}}", 4, "header, byte 25: found '}'; expected an entry with dtype, shape"),
    SAFE("{\"x\":[[[[[[[[1]]]]]]]]}", 4, "header, byte 13: found '['; expected '{'"),
    SAFE("{\"\\u0000\":{}}", 4, "header, byte 16: found '\"'; expected a character, not 0"),
    SAFE("{\"\\ud800\":{}}", 4, "header, byte 16: found '\"'; expected a character, not 0 or half"),
    SAFE("{\"\xff\":{}}", 4, "a name is not UTF-8 text"),
    SAFE("{\"__metadata__\":{\"a\":1}}", 0, "header, byte 29: found '1'; expected '\"'"),
    SAFE("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "header, byte 42: found '{'; expected __metadata__"),
    SAFE("{} x", 0, "header, byte 11: found 'x'; expected blanks"),

    BYTES("NumPy", "\x93NUMPY\2\0\xff\xff\xff\xff{", "array is incomplete: its header ends outside"),
    BYTES("NumPy", "\x93NUMPY\4\0\1\0{", "array is not a .npy array of version 1 to 3"),
    NPY(""), NPY("{}"), NPY("{'descr': '<f4', 'shape': (3,)}"), SHAPE("(3,"), SHAPE("3"), SHAPE("(3)"),
    SHAPE("(-3,)"), SHAPE("(3,,)"), SHAPE("(3, 1 2)"), SHAPE("(3,), 'shape': (3,)"),
    SHAPE("(3,), 'other': 1"), SHAPE("(3,) x"), SHAPE("(99999999999999999999,)"),
    SHAPE("(1, 1, 1, 1, 1, 1, 3)"), NPY("{'descr': 'f4', 'fortran_order': 1, 'shape': (3,)}"),
    NPY("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,)}"),
    { "NumPy", "array has more or fewer bytes than its shape", npy, LIKE("(4,)"), 0, NULL },
    { "NumPy", "array has more or fewer bytes than its shape", npy, LIKE("(2,)"), 0, NULL },
    { "NumPy", "array has", npy, LIKE("(4294967296, 4294967296)"), 0, NULL },
    GOLDEN("NumPy", "objects.npz", "x has Python objects"),
    ZIP(ALONE, "L6=1 C8=1", "a member is encrypted"), ZIP(ALONE, "C34=1", "on another volume"),
    ZIP(ALONE, "L8=12 C10=12", "another method"), ZIP(ALONE, "L18=99 C20=99", "another method"),
    ZIP(ALONE, "L14=1 C16=1", "a.npy is damaged: its checksum is wrong"),
    ZIP(ALONE, "L14=1", "the header of a member and the directory differ"),
    ZIP(ALONE, "L30=122", "the header of a member and the directory differ"),
    ZIP(ALONE, "C42=1", "a member is outside the archive, or lacks its header"),
    ZIP(ALONE, "C42:2147483647", "a member is outside the archive, or lacks its header"),
    ZIP(ALONE, "C42:4294967295", "a zip64 field is missing"),
    ZIP(ALONE, "C28=200", "a header of its directory is wrong"),
    ZIP(ALONE, "E16=9", "the position of its directory is wrong"),
    ZIP(TWICE, "", "two members have the name a.npy"), ZIP(TEXT, "", "b.txt is not a .npy"),
    ZIP(OVERLAP, "E-9:35", "two of its members overlap"),
    ZIP(BOMB, "", "a.npy has 33554432 bytes, and all members more"),
    ZIP(BOMB, "L22:1048576 C24:1048576", "a.npy is damaged: it cannot be inflated to its 1048576 bytes"),

    PICKLED("cposix\nsystem\n(X\2\0\0\0lstR.", "it has no tensors, but an object of posix.system"),
    GOLDEN("PyTorch", "evil_top.pt", "it has no tensors, but an object of posix.system"),
    GOLDEN("PyTorch", "module.pt", "torch.save(model.state_dict(), path)"),
    PICKLED("}.", "it has no tensors"), PICKLED("K\1.", "it has no tensors"),
    PICKLED("", "data.pkl: its 2 bytes end without a value"), PICKLED("}", "its 3 bytes end without a value"),
    OPCODE("I1\n.", "0x49 at offset 2: found an opcode that torch.save does not write"),
    OPCODE("(iposix\nsystem\n.", "0x69 at offset 3: found an opcode that torch.save does not write"),
    OPCODE("\x8D\0\0\0\0\0\0\0\x80", "0x8d at offset 2: found an opcode that torch.save does not write"),
    OPCODE("X\xFF\xFF\xFF\xFF", "0x58 at offset 2: found the end of the file in its argument"),
    OPCODE("cposix\nsystem", "0x63 at offset 2: found no end of a name"),
    OPCODE("cpo six\nsystem\n.", "0x63 at offset 2: found a name that is not of plain letters"),
    OPCODE("K\1K\1\x93.", "0x93 at offset 6: found no name of a function"),
    OPCODE(".", "0x2e at offset 2: found an empty stack"),
    OPCODE("(.", "0x2e at offset 3: found an empty stack"),
    OPCODE("}R.", "0x52 at offset 3: found an empty stack"),
    OPCODE("t.", "0x74 at offset 2: found no mark on the stack"),
    OPCODE("}}R.", "0x52 at offset 4: found a call without a tuple"),
    OPCODE("}(K\1u.", "0x75 at offset 6: found items that do not fit their object"),
    OPCODE("]K\1K\1s.", "0x73 at offset 7: found items that do not fit their object"),
    OPCODE("}r\xFF\xFF\xFF\x7F.", "0x72 at offset 3: found an index of the memo that is too large"),
    OPCODE("h\1.", "0x68 at offset 2: found an index that the memo does not have"),
    OPCODE(")Q.", "0x51 at offset 3: found a reference that is not a storage"),
    OPCODE("ctorch\nSize\n)R.", "0x52 at offset 15: found no function, or wrong arguments"),
    { "PyTorch", "data.pkl: opcode 0x5d at offset 65538: found more than 65536", marks, "]", 200000, NULL },
    VIEW("K\5K\1\x85K\1\x85", "begins after its storage"),
    VIEW("K\2K\3\x85K\1\x85", "ends after its storage"),
    VIEW("K\0K\2\x85K\4\x85", "ends after its storage"),
    VIEW("K\0K\2\x85K\xFF\x85", "ends after its storage"),
    VIEW("K\0\x8A\x8\0\0\0\0\0\0\0\x40K\4\x86K\0K\1\x86", "ends after its storage"),
    VIEW("K\0K\2\x85)", "has no shape"), VIEW("J\xFF\xFF\xFF\xFFK\1\x85K\1\x85", "has no shape"),
    VIEW("K\0J\xFF\xFF\xFF\xFF\x85K\1\x85", "has a size or stride that is not a count"),
    VIEW("K\0J\xFF\xFF\xFF\x7F\x85K\0\x85", REPEATED),
    PICKLED("}(X\1\0\0\0x" TENSOR("K\0K\2\x85K\2\x85") "X\1\0\0\0x" TENSOR("K\0K\2\x85K\2\x85") "u.",
            "two arrays have the name x"),
    { "PyTorch", "0.0.0 is nested more than 32 deep", lists, NULL, 100, NULL },
    { "PyTorch", "data.pkl has the same objects too often", lists, NULL, 30, NULL },

    BYTES("ONNX", ONNX "\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", "damaged at byte 5; expected a field"),
    BYTES("ONNX", ONNX "\x3b", "damaged at byte 5; expected a field"),
    BYTES("ONNX", ONNX "\x3a\x09\x2a\7\x10\1\x42\1w\x70\1", "w is stored in another file"),
    GRAPH("Frob x > z; Loop z > y", 0, "unknown operators: Frob of ai.onnx (node Frob x > z), Loop of"),
    GRAPH("Add x z > y; Neg y > z", 0, "node Add x z > y (Add): input z is not computed before it"),
    GRAPH("Neg x > y; Abs x > y", 0, "y is defined twice"),
    GRAPH("Neg x > z", 0, "output y is not computed"),
    GRAPH("If x > y", 0, "node If x > y (If): has no then_branch"),
    GRAPH("Neg x > y; w[1]=1; w[1]=1", 0, "two arrays have the name w"),
    GRAPH("Neg x > y; big[4611686018427387904,4611686018427387904]=4", 0, "big has 16 bytes of numbers"),
    GRAPH("Neg x > y; below[18446744073709551615]=1", 0, "below has an extent below 0"),
    GRAPH("LSTM x W R > y; W[1099511627776,0,0]=0; R[2,0,0]=0", 0, "node LSTM x W R > y (LSTM): the shapes"),
    GRAPH("Expand b s > y; b[]=1; s[2,2,2,2]=16", 0, "node Expand b s > y (Expand): a shape of 16 axes"),
    GRAPH("Neg x > y", 40, "(If): has no then_branch, or is nested deeper than 16"),

    H5(soft, "a.b.weight is a soft or external link"), H5(external, "a.b.weight is a soft or external link"),
    H5(soft_group, "a is a soft or external link"), H5(looped, "more than 100,000 objects or 16 levels"),
    H5(unwritten, "a.b.weight is incomplete: the file lacks bytes"),
    H5(outside, "a.b.weight has filters or is stored in another file"),
    H5(odd_float, "a.b.weight is not plain numbers [2, 3]"),
    H5(text_set, "a.b.weight is not plain numbers []"),
    H5(ours, "damaged: a checkpoint of weft without its first bytes"),
    KERAS(looped, "l0/l0 is below more than 32 groups"), KERAS(NULL, "it has no model.weights.h5"),
    ZIP(KERAS_BOMB, "", "config.json has 33554432 bytes, and all members more"),
    BYTES("weights", "", "the file is empty"),
    BYTES("weights", "not HDF5 at all", "its first bytes are of no known format"),
};

/* ---- the checks ---- */
/* A module that has the names of many rows. */
static weft_module *victim(weft *w)
{
    static const char *const names[] = { "x", "y", "w", "tensor", "array" };
    weft_module *m = weft_module_new(w, "victim");
    weft_linear_new(weft_submodule_new(m, "a"), "b", &(weft_linear_opts){ .in = 3, .out = 2 });
    for (int i = 0; i < COUNT(names); i++)
        weft_parameter(m, names[i], WEFT_SHAPE(i < 3 ? 1 : i - 1), (weft_init){ WEFT_INIT_UNIFORM, -1, 1 });
    OK(w);
    return m;
}

/* 0: into the module; 1: also with a report; 2: as a model. */
static void refuses(weft *w, weft_module *m, const row *r, const char *path, int how)
{
    char begins[200];
    const char *text = weft_file_message();
    int n = snprintf(begins, sizeof begins, *r->format ? "%s: %s: " : "%s: ", path, r->format);
    if (how == 2)
        cr_expect_null(weft_import_onnx(path, w, NULL), "%s", r->says);
    else
        cr_expect_eq(weft_load_weights(path, m, NULL, how ? &(weft_load_report){ 0 } : NULL), WEFT_EFORMAT,
                     "%s", r->says);
    cr_expect(!strncmp(text, begins, (size_t)n) && strstr(text, r->says), "expected %s%s\nfound %s", begins,
              r->says, text);
}

FILE_TEST(hostile, files_are_refused_and_change_nothing, .init = unchecked)
{
    weft_module *m = victim(w);
    uint32_t before = saved_state(m, NULL);
    long resident = most_resident();
    for (int i = 0; i < COUNT(rows); i++) {
        const char *path = in_folder("hostile");
        content file = rows[i].make(&rows[i]);
        double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        size_t most = 4 * file.n + (64 << 20);
        write_bytes(path, file.at, file.n);
        failing.largest = 0;
        failing.armed = true;
        for (int how = 0; how < 3; how++)
            if ((how == 2) == (rows[i].make == graph))
                refuses(w, m, &rows[i], path, how);
        failing.armed = false;
        cr_expect_lt(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start, 1, "%s", rows[i].says);
        cr_expect_lt(failing.largest, most, "%s", rows[i].says);
        cr_expect(CHECK_SANITIZED || (most_resident() - resident) << 10 < (long)most, "%s", rows[i].says);
        cr_expect_eq(saved_state(m, NULL), before, "%s: a weight has changed", rows[i].says);
        OK(w);
    }
    nothing_is_open();
    cr_assert(access("weft_evil", F_OK));
}

/* Odd files that are read, with the kind of their only array in place of the format, and its name. */
FILE_TEST(hostile, valid_files_of_these_forms_are_read)
{
    static const char cycle[] = P "}q\0(X\1\0\0\0wh\0X\1\0\0\0x" TENSOR("K\1K\2\x85K\2\x85") "u.";
    static const row good[] = {
        { "float32 [2]", "x", pickle, cycle, sizeof cycle - 1, NULL },
        { "float32 [1]", "x", safetensors, X("1", "0,4") "}  ", 4, NULL },
        { "float32 [3]", "array", npy, LIKE("(3,)"), 0, NULL },
        { "big-endian int32 [3]", "array", npy, "{'shape':(3,),'descr':'>i4','fortran_order':True} \n", 0,
          NULL },
        { "float64 []", "a", zip, "", ALONE, NULL },
        { "float32 [2]", "b", graph, "Add x b > y; b[2]=2", 0, NULL },
    };
    static const double values[COUNT(good)][3] = { { 2, 4 }, [COUNT(good) - 1] = { 1, 2 } };
    for (int i = 0; i < COUNT(good); i++) {
        content file = good[i].make(&good[i]);
        weft__weights *all = open_weights(put_bytes("good", file.at, file.n), NULL);
        cr_assert_eq(all->n, 1);
        has_numbers(all, good[i].says, good[i].format, values[i]);
    }
}

/* ---- damaged files ---- */
/* Opens a file and reads all its arrays. Returns whether it could be opened. */
static bool opens(const void *bytes, size_t n)
{
    weft__weights *w;
    double start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    weft_status s = weft__weights_open(put_bytes("damaged", bytes, n), NULL, &w);
    for (int64_t i = 0; !s && i < w->n; i++) {
        size_t size = weft__kind_bytes(&w->array[i].kind);
        void *values = w->array[i].kind.type == WEFT__ODD || size > 1 << 16 ? NULL : malloc(8 * size + 8);
        if (values)
            weft__array_read(w, &w->array[i], WEFT__F64, values);
        free(values);
    }
    cr_assert(!s == !!w && (!s || *weft_file_message()));
    weft__weights_close(w);
    cr_assert(seconds_of(CLOCK_THREAD_CPUTIME_ID) - start < 1);
    return !s;
}

/* No prefix of a file can be opened. With a byte changed to each of three values it may. */
FILE_TEST(hostile, cut_and_changed_files_are_survived)
{
    static const char *const files[] = {
        "types.safetensors", "tensor.pt", "big.pt", "packed.npz", "zip64.npz", "lone.npy",
        "tagger.weights.h5", "tagger.keras", "tagger_of_keras_2.h5",
    };
    for (int f = 0; f < COUNT(files); f++) {
        content b = read_bytes(sample(files[f]));
        for (size_t i = 0; i < b.n; i += b.n < 2000 ? 1 : b.n / 300) {
            unsigned char was = b.at[i], other[] = { was ^ (unsigned char)(1 << i % 8), 0xFF, was + 1 };
            cr_assert_not(opens(b.at, i), "%s: the first %zu bytes", files[f], i);
            for (int k = 0; k < COUNT(other); k++) {
                b.at[i] = other[k];
                opens(b.at, b.n);
            }
            b.at[i] = was;
        }
    }
    nothing_is_open();
}

/* Each byte of a pickle, in an archive whose checksums are right. */
FILE_TEST(hostile, changed_pickles_are_survived)
{
    static const char *const files[] = { "training.pt", "parallel.pt", "views.pt" };
    for (int f = 0; f < COUNT(files); f++) {
        enum { MOST = 64 };
        weft__weights *all = open_weights(sample(files[f]), NULL);
        weft__zip zip;
        member m[MOST], *pickle = NULL;
        cr_assert(weft__zip_list(all, &zip) && zip.n < MOST);
        for (int i = 0; i < zip.n; i++) {
            m[i] = (member){ zip.member[i].name, zip.member[i].bytes, zip.member[i].size, false };
            pickle = strstr(m[i].name, "/data.pkl") ? &m[i] : pickle;
        }
        unsigned char *code = copy_of(pickle->bytes, pickle->n).at;
        pickle->bytes = code;
        for (size_t i = 0; i < pickle->n; i++) {
            unsigned char was = code[i];
            unsigned char other[] = { was ^ (unsigned char)(1 << i % 8), was + 1, 0xFF, '(', was };
            bool read = false;
            for (int k = 0; k < COUNT(other); k++) {
                code[i] = other[k];
                content damaged = zip_new(m, (int)zip.n);
                read = opens(damaged.at, damaged.n);
                free(damaged.at);
            }
            cr_assert(read, "byte %zu as it was", i);
        }
    }
}
