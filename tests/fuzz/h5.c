/* h5.c - mutates HDF5 files. It changes fields of known structures: superblock, object headers and their
 * messages, heaps, trees, names. Then it corrects HDF5's checksums, so that libhdf5 accepts the file. Weft's
 * checksums do not change. */
#include "fuzz.h"
#include "io/io.h"

/* libhdf5's checksum, Jenkins's lookup3 */
uint32_t H5_checksum_metadata(const void *data, size_t n, uint32_t before);

enum { MESSAGES = 400 };
enum { DATASPACE = 1, LINK_INFO = 2, DATATYPE = 3, LINK = 6, LAYOUT = 8, FILTERS = 11, CONTINUATION = 16 };
typedef struct { size_t at, n; int type; } message;
typedef struct { uint8_t *at; size_t n, base; message m[MESSAGES]; int messages; } file;

static uint64_t field(const file *f, size_t at, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i-- > 0 && at + i < f->n; )
        v = v << 8 | f->at[at + i];
    return v;
}

static void set_field(file *f, size_t at, size_t n, uint64_t v)
{
    for (size_t i = 0; i < n && at + i < f->n; i++)
        f->at[at + i] = (uint8_t)(v >> 8 * i);
}

static bool is(const file *f, size_t at, const char *signature)
{
    return at + 4 <= f->n && !memcmp(f->at + at, signature, 4);
}

/* ---- structures: object headers and the offsets of their messages ---- */
/* of version 2, "OHDR"; 0: beyond the file */
static size_t header_end(const file *f, size_t at, size_t *first)
{
    uint8_t flags = f->at[at + 5];
    size_t behind = at + 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0),
           width = (size_t)1 << (flags & 3);
    if (behind + width > f->n)
        return 0;
    uint64_t n = field(f, behind, width);
    *first = behind + width;
    return n < f->n - *first ? *first + (size_t)n : 0;
}

static void add_messages(file *f, size_t at, size_t end, size_t head, size_t type_bytes)
{
    while (at + head <= end && f->messages < MESSAGES) {
        size_t n = (size_t)field(f, at + type_bytes, 2);
        if (n > end - at - head)
            return;
        f->m[f->messages++] = (message){ at + head, n, (int)field(f, at, type_bytes) };
        at += head + n;
    }
}

static void find_messages(file *f)
{
    f->messages = 0;
    for (size_t at = f->base; at + 24 < f->n; at++) {
        size_t first, end;
        if (is(f, at, "OHDR") && (end = header_end(f, at, &first)))
            add_messages(f, first, end, f->at[at + 5] & 4 ? 6 : 4, 1);
        bool old = !((at - f->base) % 8) && f->at[at] == 1 && !f->at[at + 1] && field(f, at + 4, 4) == 1 &&
                   field(f, at + 8, 4) <= f->n - at - 16;
        /* version 1 has no signature: reference count 1, a size that fits */
        if (old && f->at[at + 2] && !f->at[at + 3])
            add_messages(f, at + 16, at + 16 + (size_t)field(f, at + 8, 4), 8, 2);
    }
}

/* ---- checksums ---- */
static void sum(file *f, size_t at, size_t n)
{
    if (n < f->n && at + n + 4 <= f->n)
        set_field(f, at + n, 4, H5_checksum_metadata(f->at + at, n, 0));
}

static void sum_tree(file *f, size_t at)         /* version 2, with its root if the root is a leaf */
{
    uint64_t record = field(f, at + 10, 2), root = field(f, at + 16, 8), n = field(f, at + 24, 2);
    sum(f, at, 34);
    if (root < f->n && is(f, f->base + root, "BTLF") && record * n < f->n)
        sum(f, f->base + (size_t)root, 6 + record * n);
}

static void sum_all(file *f)
{
    for (size_t at = f->base; at + 16 < f->n; at++) {
        size_t first, end;
        if (is(f, at, "\211HDF") && f->at[at + 8] >= 2)
            sum(f, at, 12 + 4 * 8);
        else if (is(f, at, "OHDR") && (end = header_end(f, at, &first)))
            sum(f, at, end - at);
        else if (is(f, at, "BTHD"))
            sum_tree(f, at);
        else if (is(f, at, "FRHP"))
            sum(f, at, 142);
        else if (is(f, at, "FAHD"))
            sum(f, at, 24);
        else if (is(f, at, "EAHD"))
            sum(f, at, 68);
    }
    find_messages(f);
    /* only the message contains the length of a continuation block */
    for (int i = 0; i < f->messages; i++) {
        const message *m = &f->m[i];
        uint64_t at = m->type == CONTINUATION ? field(f, m->at, 8) : f->n, n = field(f, m->at + 8, 8);
        if (at < f->n && n >= 8 && n < f->n && is(f, f->base + (size_t)at, "OCHK"))
            sum(f, f->base + (size_t)at, (size_t)n - 4);
    }
}

/* ---- mutations ---- */
/* Also a position in the file, or that of a message. */
static uint64_t odd_field(const file *f, uint64_t now)
{
    uint64_t how = dice(6);
    return how == 0                ? dice(f->n) :
           how == 1 && f->messages ? f->m[dice((uint64_t)f->messages)].at - f->base :
                                     odd_number(now);
}

static void change_in(file *f, size_t at, size_t n)
{
    size_t width = (size_t)1 << dice(4);
    at += n > width ? dice(n - width + 1) : 0;
    set_field(f, at, width, odd_field(f, field(f, at, width)));
}

static void change_dataspace(file *f, const message *m)
{
    size_t rank = f->at[m->at + 1], first = m->at + (f->at[m->at] == 2 ? 4 : 8), axis = dice(rank);
    if (m->n < 12 || dice(4) == 0)
        change_in(f, m->at, m->n);
    else if (rank == 2 && dice(2)) {          /* the same count in another shape */
        uint64_t a = field(f, first, 8), b = field(f, first + 8, 8);
        set_field(f, first, 8, b), set_field(f, first + 8, 8, a);
    } else
        set_field(f, first + 8 * axis, 8, odd_field(f, field(f, first + 8 * axis, 8)));
}

static void change_message(file *f)
{
    for (int tries = 0; tries < 20 && f->messages; tries++) {
        const message *m = &f->m[dice((uint64_t)f->messages)];
        bool needed = m->type == DATASPACE || m->type == DATATYPE || m->type == LAYOUT || m->type == LINK ||
                      m->type == LINK_INFO || m->type == FILTERS;
        if (m->n < 4 || (!needed && dice(4)))
            continue;
        if (m->type == DATASPACE)
            change_dataspace(f, m);
        else if (dice(8))
            change_in(f, m->at, m->n);
        else                                     /* its head: type, size, flags */
            change_in(f, m->at - 4, 4);
        return;
    }
    change_in(f, f->base, f->n - f->base);
}

static void exchange_messages(file *f)           /* of one kind, between objects */
{
    for (int tries = 0; tries < 50 && f->messages; tries++) {
        const message *a = &f->m[dice((uint64_t)f->messages)], *b = &f->m[dice((uint64_t)f->messages)];
        if (a->type != b->type || a->at == b->at || !a->n)
            continue;
        memmove(f->at + a->at, f->at + b->at, a->n < b->n ? a->n : b->n);
        return;
    }
}

/* Returns the position of one of the structures with this signature, or 0. */
static size_t any_structure(const file *f, const char *signature)
{
    size_t found[64];
    int n = 0;
    for (size_t at = f->base; at + 4 < f->n && n < COUNT(found); at++)
        if (is(f, at, signature))
            found[n++] = at;
    return n ? found[dice((uint64_t)n)] : 0;
}

static void change_structure(file *f)            /* near a signature */
{
    static const char *const signature[] = { "TREE", "HEAP", "SNOD", "OHDR", "\211HDF", "FRHP", "FHDB",
                                             "BTHD", "BTLF", "OCHK", "GCOL", "FAHD", "EAHD" };
    size_t at = any_structure(f, signature[dice(COUNT(signature))]);
    change_in(f, at ? at : f->base, at ? 96 : f->n - f->base);
}

/* Changes a key or an address in a tree of version 1: of a set's chunks (bytes, skipped filters, positions),
 * or of a group. */
static void change_tree(file *f)
{
    enum { HEAD = 24, KEYS = 4 };
    size_t at = any_structure(f, "TREE"), field_at = at + HEAD + 8 * dice(8 * KEYS), width = dice(2) ? 4 : 8;
    if (!at || at + HEAD > f->n)
        change_structure(f);
    else if (dice(8) == 0)
        change_in(f, at, HEAD);                  /* kind, level, entries */
    else
        set_field(f, field_at, width, odd_field(f, field(f, field_at, width)));
}

static void change_name(file *f)                 /* changes one letter of a name */
{
    for (int tries = 0; tries < 50; tries++) {
        size_t at = f->base + dice(f->n - f->base - 4);
        bool letters = true;
        for (int i = 0; i < 4; i++)
            letters = letters && f->at[at + (size_t)i] >= 'a' && f->at[at + (size_t)i] <= 'z';
        if (!letters)
            continue;
        f->at[at] = (uint8_t)"x/.\0a\200"[dice(6)];
        return;
    }
}

static void copy_block(file *f)
{
    size_t from = f->base + dice(f->n - f->base), to = f->base + dice(f->n - f->base),
           n = 1 + dice(dice(4) ? 16 : 600);
    n = n > f->n - from ? f->n - from : n;
    n = n > f->n - to ? f->n - to : n;
    memmove(f->at + to, f->at + from, n);
}

size_t h5_mutate(uint8_t *bytes, size_t n, size_t most, unsigned seed, bool repair)
{
    file f = { .at = bytes, .n = n };
    dice_seed(seed);
    f.base = n > SEAL + 64 && !memcmp(bytes, "weft", 4) ? SEAL : 0;
    if (n < f.base + 64 || dice(24) == 0)
        return LLVMFuzzerMutate(bytes, n, most);
    find_messages(&f);
    for (uint64_t times = 1 + dice(3); times--; )
        switch (dice(13)) {
        case 0:  f.at[dice(f.n)] ^= (uint8_t)(1u << dice(8)); break;
        case 1:  change_in(&f, f.base, 96); break;               /* the superblock */
        case 2:  change_structure(&f); break;
        case 3:  change_name(&f); break;
        case 4:  copy_block(&f); break;
        case 5:  exchange_messages(&f); break;
        case 6:  change_in(&f, f.base, f.n - f.base); break;
        case 7:  change_tree(&f); break;
        default: change_message(&f); break;
        }
    if (dice(40) == 0)
        f.n = f.base + 1 + dice(f.n - f.base);
    if (repair)
        sum_all(&f);
    return f.n;
}

void fuzz_reseal(uint8_t *file, size_t n)
{
    if (n < SEAL)
        return;
    memset(file, 0, SEAL);
    snprintf((char *)file, SEAL, "weft checkpoint 1\nbytes %zu\ncrc32c %08x\nHDF5 begins at byte %d\n",
             n - SEAL, (unsigned)weft__crc32c(0, file + SEAL, n - SEAL), SEAL);
}

const char *fuzz_sealed(uint8_t options, const uint8_t *file, size_t n)
{
    uint8_t *own = malloc(n);
    memcpy(own, file, n);
    if (options % SEALS == RESEALED)
        fuzz_reseal(own, n);
    const char *path = fuzz_file(own, n);
    free(own);
    return path;
}
