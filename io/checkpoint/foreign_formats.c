/* foreign_formats.c - recognises files of other programs by their first bytes, where weights are expected,
 * and explains how to convert them. */
#include <string.h>
#include "io/io.h"

/* the first n bytes of a file of `size` bytes */
typedef struct { const unsigned char *at; size_t n, size; } head;

static bool begins(const head *h, size_t from, const char *with, size_t n)
{
    return h->n >= from + n && !memcmp(h->at + from, with, n);
}

/* ---- zip: torch.save and numpy.savez ---- */
static bool zip_with(const head *h, const char *ending)          /* whether the name of the first entry has
                                                                  * this ending */
{
    enum { NAME_SIZE = 26, NAME = 30 };
    size_t n = strlen(ending), name = h->n < NAME ? 0 : h->at[NAME_SIZE] + 256u * h->at[NAME_SIZE + 1];
    return begins(h, 0, "PK\3\4", 4) && name >= n && begins(h, NAME + name - n, ending, n);
}

static bool is_torch(const head *h)  /* before PyTorch 1.6: a pickle of a number that only torch writes */
{
    return zip_with(h, "/data.pkl") || zip_with(h, "/.format_version") ||
           begins(h, 0, "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
}

static bool is_npz(const head *h) { return zip_with(h, ".npy"); }
static bool is_zip(const head *h) { return begins(h, 0, "PK\3\4", 4); }
static bool is_pickle(const head *h)
{
    return h->n > 2 && h->at[0] == 0x80 && h->at[1] >= 2 && h->at[1] <= 5;
}

/* ---- others ---- */
static bool is_safetensors(const head *h)        /* the length of a JSON text, then that text */
{
    uint64_t text = 0;
    for (int i = 7; i >= 0 && h->n > 10; i--)
        text = text << 8 | h->at[i];
    return text >= 2 && text <= h->size - 8 && begins(h, 8, "{", 1) &&
           (h->at[9] == '"' || h->at[9] == '}' || h->at[9] == ' ');
}

/* a protobuf: field 1 is the format's version, then the producer, a domain, opsets or the graph */
static bool is_onnx(const head *h)
{
    return h->n > 8 && h->at[0] == 0x08 && h->at[1] >= 1 && h->at[1] < 64 &&
           strchr("\x12\x1a\x22\x3a\x42", h->at[2]) && h->at[2] &&
           (h->at[2] == 0x3a || (size_t)h->at[3] + 4 <= h->size) &&
           (h->at[2] != 0x12 || (h->at[4] >= ' ' && h->at[4] < 127));
}

/* ---- messages ---- */
/* Tensors of any float type, parameters, and the state dict inside a training checkpoint. */
#define TENSORS                                                                                  \
    "[f.create_dataset(k, data=v.detach().double().numpy()) for k, v in s.items() if hasattr(v, " \
    "'detach')]"
#define ARRAYS  "[f.create_dataset(k, data=v) for k, v in s.items()]"
#define INSIDE                                                                                        \
    "s = next((s[k] for k in ('state_dict', 'model_state_dict', 'model') if hasattr(s.get(k), 'items')), " \
    "s); "

static const struct { bool (*detect)(const head *); const char *message, *values, *stores;
} formats[] = {
    { is_torch, "a file of torch.save; expected a checkpoint or HDF5 file.",
      "import torch; s = torch.load(path, map_location='cpu'); " INSIDE, TENSORS },
    { is_npz, "a NumPy archive (.npz); expected a checkpoint or HDF5 file.",
      "import numpy; s = numpy.load(path); ", ARRAYS },
    { is_zip, "a zip archive; expected a checkpoint or HDF5 file.", NULL, NULL },
    /* its length may look like a pickle, for example 640 bytes */
    { is_safetensors, "a safetensors file; expected a checkpoint or HDF5 file.",
      "import safetensors.torch; s = safetensors.torch.load_file(path); ", TENSORS },
    { is_pickle, "a Python pickle; expected a checkpoint or HDF5 file.",
      "import pickle; s = pickle.load(open(path, 'rb')); ", ARRAYS },
    { is_onnx,
      "an ONNX model; expected a checkpoint or HDF5 file. Its weights have other names and shapes (LSTM: "
      "gates i o f c, both biases in one array): first change s to weft's names and shapes.",
      "import onnx, onnx.numpy_helper as h; "
      "s = {t.name: h.to_array(t) for t in onnx.load(path).graph.initializer}; ",
      ARRAYS },
};

weft_status weft__foreign(const char *path, const unsigned char *bytes, size_t n, size_t size)
{
    const head h = { bytes, n, size };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!formats[i].detect(&h))
            continue;
        if (!formats[i].values)
            return weft__file_fail(WEFT_EFORMAT,
                                   "%.300s: %s\nUnpack it: weft_load reads checkpoints, weft_load_state_dict "
                                   "reads HDF5 files.",
                                   path, formats[i].message);
        return weft__file_fail(WEFT_EFORMAT,
                               "%.300s: %s weft_load_state_dict reads the output of this Python "
                               "code:\n%simport h5py; f = h5py.File('weights.h5', 'w'); %s; f.close()",
                               path, formats[i].message, formats[i].values, formats[i].stores);
    }
    return WEFT_OK;
}
