/* fuzz_checkpoint.c - fuzzes weft_load of a model or of items only, weft_load_matching and
 * weft_checkpoint_item_size: loaded state equals the saved state, and an error changes nothing. Options: the
 * seal and the reader.
 *
 * PLAIN leaves the damage. RESEALED corrects weft's seal, to test the checks after it. REPAIRED corrects
 * HDF5's checksums but not weft's. Both together would be a forgery, which checksums cannot detect. */
#include "weft_lab.h"
#include "fuzz.h"

static model saved, other;
static uint32_t good;

/* A loaded file adds its streams to the context, so open a new context from time to time. */
static void begin(void)
{
    if (other.w)
        weft_close(other.w), weft_close(saved.w);
    saved = model_new(1);
    other = model_new(2);
    good = model_state(&saved);
}

static bool is_said(const extras *e)
{
    return !memcmp(e->ints, said.ints, sizeof e->ints) && !strcmp(e->text, said.text) &&
           e->score == said.score && !memcmp(e->bytes, said.bytes, sizeof e->bytes);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (size < 2)
        return size;
    return 1 + h5_mutate(data + 1, size - 1, most - 1, seed, data[0] % SEALS == REPAIRED);
}

static void load(const char *path, size_t n)
{
    extras e = { { 0 }, "", 0, { 0 } };
    weft_checkpoint_item items[ITEMS];
    model_items(&e, items);
    uint32_t before = model_state(&other);
    fuzz_watch(n);
    weft_status s = weft_load(path, other.m, other.o, items, ITEMS);
    fuzz_watched(s);
    SAME(weft_ok(other.w), "the context has failed: %s", weft_error_message(other.w));
    if (s) {
        SAME(model_state(&other) == before && !e.ints[0] && !e.text[0] && e.score == 0,
             "an error has changed something: %s", weft_file_message());
        return;
    }
    SAME(model_state(&other) == good && is_said(&e), "the loaded state differs from the saved one");
    weft_assign_values(other.first, (weft_real[40]){ 3 }, 40);    /* differs from the saved values */
}

static void load_matching(const char *path, size_t n)
{
    weft_load_report r;
    uint32_t before = model_state(&other);
    fuzz_watch(n);
    weft_status s = weft_load_matching(path, other.m, &r);
    fuzz_watched(s);
    SAME(!s || model_state(&other) == before, "an error has changed something: %s", weft_file_message());
    SAME(strlen(r.text) < sizeof r.text && r.loaded >= 0, "a report without an end");
    weft_assign_values(other.first, (weft_real[40]){ 3 }, 40);
}

static void load_items(const char *path, size_t n)
{
    extras e;
    weft_checkpoint_item items[ITEMS];
    memset(&e, 7, sizeof e);
    extras before = e;
    model_items(&e, items);
    fuzz_watch(n);
    weft_status s = weft_load(path, NULL, NULL, items, ITEMS);
    fuzz_watched(s);
    if (s) {
        SAME(!memcmp(&e, &before, sizeof e), "an error has changed an item: %s", weft_file_message());
        return;
    }
    SAME(memchr(e.text, 0, sizeof e.text), "a text without its final 0");
    SAME(is_said(&e), "items are not those that were saved");
}

static void item_sizes(const char *path, size_t n)
{
    static const struct {
        const char *name;
        int64_t n;
    } want[] = { { "ints", 6 }, { "text", 18 }, { "score", 1 }, { "bytes", 3 } };
    for (int i = 0; i < COUNT(want); i++) {
        fuzz_watch(n);
        int64_t is = weft_checkpoint_item_size(path, want[i].name);
        fuzz_watched(is < 0 ? WEFT_EFORMAT : WEFT_OK);
        SAME(is == want[i].n || is == -1, "item %s has %lld, %lld were saved", want[i].name, (long long)is,
             (long long)want[i].n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const char *, size_t) = { load, load_matching, load_items, item_sizes };
    static int runs;
    if (size < 2)
        return 0;
    if (runs++ % 5000 == 0)
        begin();
    readers[data[0] / SEALS % READERS](fuzz_sealed(data[0], data + 1, size - 1), size - 1);
    return 0;
}
