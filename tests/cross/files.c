/* files.c - writes files of every kind, for a comparison of machines: files WRITE [READ].
 *
 * Writes to the folder WRITE the checkpoint, HDF5 weights, safetensors, ONNX model and journal of a net with
 * its first values. Their bytes must not depend on the CPU. Then reads the files of the folder READ, which
 * another machine has written, and compares all numbers. After a failure it prints a message and ends with 1.
 */
#include <stdlib.h>
#include <string.h>
#include "weft_lab.h"
#include "weft_onnx.h"

enum { WIDTH = 24, NAME = 512, MOST = 1 << 14 };
typedef struct { weft *w; weft_module *m; weft_rnn *lstm; weft_linear *out; weft_optim *adam; } model;
/* items of a checkpoint */
typedef struct {
    int64_t whole[3];
    double wide[3];
    int32_t ints[3];
    weft_real real[3];
    char text[8];
} numbers;
static const numbers stored = { { 1, -1, INT64_MAX - 7 }, { .1, -1e300, 3 }, { 1, -2, 1 << 30 },
                                { (weft_real).1, -3, 7 }, "weft" };

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "files: %s: %s\n", what, weft_file_message());
    exit(1);
}

static model model_new(uint64_t seed)
{
    model n = { .w = weft_open(&(weft_opts){ .device = WEFT_CPU, .seed = seed, .threads = 1 }) };
    n.m = weft_module_new(n.w, "net");
    n.lstm = weft_lstm_new(n.m, "lstm", &(weft_rnn_opts){ .input = WIDTH, .hidden = WIDTH, .layers = 2 });
    n.out = weft_linear_new(n.m, "out", &(weft_linear_opts){ .in = WIDTH, .out = 5 });
    weft_parameter(n.m, "normal", WEFT_SHAPE(7, 5), (weft_init){ WEFT_INIT_NORMAL, 0, 1 });
    n.adam = weft_adam_new(n.m, &(weft_adam_opts){ .lr = 1e-3 });
    return n;
}

static const char *in(const char *folder, const char *name)
{
    static char path[NAME];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int items_of(numbers *x, weft_checkpoint_item item[5])
{
    item[0] = (weft_checkpoint_item){ "whole", WEFT_I64, x->whole, 3 };
    item[1] = (weft_checkpoint_item){ "wide", WEFT_F64, x->wide, 3 };
    item[2] = (weft_checkpoint_item){ "ints", WEFT_I32, x->ints, 3 };
    item[3] = (weft_checkpoint_item){ "real", WEFT_REAL, x->real, 3 };
    item[4] = (weft_checkpoint_item){ "text", WEFT_TEXT, x->text, sizeof x->text };
    return 5;
}

static void write_all(model *n, const char *folder)
{
    numbers items = stored;
    weft_checkpoint_item item[5];
    weft_journal *j;
    must(!weft_save(in(folder, "net.weft"), n->m, n->adam, item, items_of(&items, item)), "checkpoint");
    must(!weft_save_weights(in(folder, "net.h5"), n->m), "HDF5");
    must(!weft_save_weights(in(folder, "net.safetensors"), n->m), "safetensors");
    weft_onnx_input x = { weft_zeros(n->w, WEFT_SHAPE(2, WIDTH)), "x", 0 };
    weft_tensor *y = weft_linear_run(n->out, x.tensor);
    must(!weft_export_onnx(in(folder, "net.onnx"), &y, 1, &(weft_onnx_export_opts){ &x, 1, NULL }), "ONNX");
    must(!weft_journal_open(in(folder, "net.jsonl"), false, &j), "journal");
    for (int i = 0; i < 20; i++, weft_journal_line_end(j)) {
        weft_journal_text(j, "text", "a \"line\"\n");
        weft_journal_number(j, "number", 1. / (i + 1) * 1e-7 * (double)((int64_t)1 << 2 * i));
    }
    weft_journal_close(j);
}

/* Compares all parameters. */
static void same(const model *a, const model *b, const char *name)
{
    static weft_real x[MOST], y[MOST];
    for (int i = 0; i < weft_parameter_count(a->m); i++) {
        weft_tensor *p = weft_parameter_at(a->m, i, NULL), *q = weft_parameter_at(b->m, i, NULL);
        size_t bytes = (size_t)weft_numel(p) * sizeof *x;
        weft_read(p, x, bytes), weft_read(q, y, bytes);
        must(bytes <= sizeof x && !memcmp(x, y, bytes), name);
    }
}

static void read_all(const model *n, const char *folder)
{
    static const char *const weights[] = { "net.h5", "net.safetensors" };
    numbers items = { .text = "" };
    weft_checkpoint_item item[5];
    model other = model_new(2);
    must(!weft_load(in(folder, "net.weft"), other.m, other.adam, item, items_of(&items, item)), "checkpoint");
    same(n, &other, "checkpoint");
    must(!memcmp(&items, &stored, sizeof items), "items");
    weft_close(other.w);
    for (int i = 0; i < 2; i++) {
        other = model_new(3);
        must(!weft_load_weights(in(folder, weights[i]), other.m, NULL, NULL), weights[i]);
        same(n, &other, weights[i]);
        weft_close(other.w);
    }
    other.w = weft_open(NULL);
    weft_onnx *onnx = weft_import_onnx(in(folder, "net.onnx"), other.w, NULL);
    must(onnx && weft_ok(other.w), "ONNX");
    weft_tensor *x = weft_full(other.w, 1, WEFT_SHAPE(2, WIDTH)), *y;
    must(weft_onnx_run(onnx, &x, 1, &y, 1), "ONNX");
    weft_real found[10], expected[10];
    weft_read(y, found, sizeof found);
    weft_read(weft_linear_run(n->out, weft_full(n->w, 1, WEFT_SHAPE(2, WIDTH))), expected, sizeof expected);
    must(!memcmp(found, expected, sizeof found), "ONNX");
    weft_close(other.w);
}

int main(int n, char **arg)
{
    model net = model_new(1);
    if (n < 2)
        return fprintf(stderr, "usage: files WRITE [READ]\n"), 2;
    write_all(&net, arg[1]);
    if (n > 2)
        read_all(&net, arg[2]);
    must(weft_ok(net.w), weft_error_message(net.w));
    weft_close(net.w);
    return 0;
}
