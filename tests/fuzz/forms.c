/* forms.c - mutates files with weights by their structure: members of a zip, opcodes of a pickle, fields of a
 * protobuf, texts with numbers (safetensors, .npy, JSON) and HDF5. Then it corrects lengths and CRCs, so that
 * readers accept the outer structure and see the damage inside. */
#include "fuzz.h"
#include "tests/zips.h"

enum { ROOM = 1 << 16, PARTS = 64 };
typedef struct { uint8_t *at; size_t n; } bytes; /* owned, of ROOM bytes */
typedef struct { const uint8_t *at; size_t n; } part;

static bytes mutated(part p, int depth);

static bytes empty(void) { return (bytes){ malloc(ROOM), 0 }; }
static void put(bytes *b, const void *p, size_t n)
{
    n = n > ROOM - b->n ? ROOM - b->n : n;
    if (n)
        memcpy(b->at + b->n, p, n);
    b->n += n;
}
static void put_number(bytes *b, uint64_t v, size_t n)
{
    for (; n--; v >>= 8)
        put(b, &(uint8_t){ (uint8_t)v }, 1);
}
static uint64_t number(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    while (n--)
        v = v << 8 | p[n];
    return v;
}
static bytes leaf(part p)
{
    bytes b = empty();
    put(&b, p.at, p.n);
    b.n = LLVMFuzzerMutate(b.at, b.n, ROOM);
    return b;
}

/* ---- parts in a row: one is removed, repeated, exchanged, or replaced by `changed` ---- */
static bytes row(const part *p, int n, bytes (*changed)(part, int), int depth)
{
    bytes b = empty();
    int i = (int)dice((uint64_t)n), other = (int)dice((uint64_t)n), how = (int)dice(24);
    for (int tries = 0; tries < 30 && how > 12 && !memchr("KMJ\x0a", p[i].at[0], 4); tries++)
        i = (int)dice((uint64_t)n); /* rather a number of a pickle, or a first field */
    for (int k = 0; k < n; k++) {
        part is = p[how == 0 && k == i ? other : how == 0 && k == other ? i : how == 1 && k == i ? other : k];
        if (k == i && how == 2)
            continue;
        if (k == i && how > 3) {
            bytes c = changed(is, depth);
            put(&b, c.at, c.n);
            free(c.at);
        } else
            put(&b, is.at, is.n);
        if (k == i && how == 3)
            put(&b, is.at, is.n);
    }
    return b;
}

/* ---- texts: numbers, names and blocks ---- */
static bytes text_changed(part p)
{
    static const char *const words[] = {
        "-1", "1e9", "[]", "{", "\"__metadata__\"", "9223372036854775808", "<f8", "null", "\"\\u0000\""
    };
    bytes b = empty();
    size_t from = dice(p.n), end;
    uint64_t now = 0;
    for (size_t tries = 0; tries < p.n && !(p.at[from] >= '0' && p.at[from] <= '9') && dice(8); tries++)
        from = (from + 1) % p.n;
    for (end = from; end < p.n && p.at[end] >= '0' && p.at[end] <= '9'; end++)
        now = now * 10 + p.at[end] - '0';
    put(&b, p.at, from);
    char digits[32];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)odd_number(now));
    const char *word = words[dice(COUNT(words))];
    if (end > from && dice(6))
        put(&b, digits, strlen(digits));
    else if (dice(2))
        put(&b, word, strlen(word)), end += end < p.n;
    else { /* a block from another place */
        size_t to = dice(p.n);
        put(&b, p.at + to, 1 + dice(p.n - to));
    }
    put(&b, p.at + end, p.n - end);
    return b;
}

/* A head of `head` bytes that end in the length of a text in `width` bytes; the text; data. */
static bytes text_first(part p, size_t head, size_t width)
{
    uint64_t n = p.n < head ? 0 : number(p.at + head - width, width);
    if (!n || n > p.n - head)
        return leaf(p);
    bytes c = text_changed((part){ p.at + head, (size_t)n }), b = empty();
    put(&b, p.at, head - width);
    put_number(&b, dice(20) ? c.n : odd_number(c.n), width);
    put(&b, c.at, c.n);
    put(&b, p.at + head + n, p.n - head - (size_t)n);
    free(c.at);
    return b;
}

/* ---- protobuf ---- */
static uint64_t varint(part *p)
{
    uint64_t v = 0;
    for (unsigned shift = 0; p->n; shift += 7) {
        uint8_t c = *p->at++;
        p->n--;
        v |= shift < 64 ? (uint64_t)(c & 127) << shift : 0;
        if (c < 128)
            break;
    }
    return v;
}
static void put_varint(bytes *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        put_number(b, v | 128, 1);
    put_number(b, v, 1);
}

/* Cuts a message into fields. Returns their number, or 0 if these bytes are not a message. */
static int fields(part p, part *f)
{
    int n = 0;
    while (p.n && n < PARTS) {
        const uint8_t *from = p.at;
        uint64_t key = varint(&p),
                 bytes_of[] = { 0, 8, 0, PARTS * ROOM, PARTS * ROOM, 4, PARTS * ROOM, PARTS * ROOM },
                 more = (key & 7) == 2 ? varint(&p) :
                        (key & 7) == 0 ? varint(&p) * 0 :
                                         bytes_of[key & 7];
        if (!(key >> 3) || key >> 3 > 100 || more > p.n)
            return 0;
        p.at += more;
        p.n -= (size_t)more;
        f[n++] = (part){ from, (size_t)(p.at - from) };
    }
    if (p.n && n) /* all others */
        f[n - 1].n += p.n;
    return n;
}

static bytes field_changed(part p, int depth)
{
    bytes b = empty();
    uint64_t key = varint(&p), wire = key & 7;
    put_varint(&b, dice(15) ? key : key ^ 8u << dice(4));
    if (wire == 2) {
        uint64_t n = varint(&p);
        bytes c = mutated((part){ p.at, n < p.n ? (size_t)n : p.n }, depth + 1);
        put_varint(&b, dice(30) ? c.n : odd_number(c.n));
        put(&b, c.at, c.n);
        free(c.at);
    } else if (wire == 0)
        put_varint(&b, odd_number(varint(&p)));
    else
        put_number(&b, odd_number(number(p.at, p.n < 8 ? p.n : 8)), p.n);
    return b;
}

/* ---- pickle ---- */
static size_t opcode_bytes(part p)
{
    static const char one[] = "\200Kqh\202", two[] = "M\203", four[] = "Jrj\204", eight[] = "G\225",
                      size1[] = "\214\212UC", size4[] = "X\213TB";
    if (*p.at == 'c') {
        const uint8_t *line = memchr(p.at, '\n', p.n);
        line = line ? memchr(line + 1, '\n', p.n - (size_t)(line + 1 - p.at)) : NULL;
        return line ? (size_t)(line + 1 - p.at) : p.n;
    }
    size_t n = strchr(one, *p.at)   ? 2 :
               strchr(two, *p.at)   ? 3 :
               strchr(four, *p.at)  ? 5 :
               strchr(eight, *p.at) ? 9 :
                                      1;
    if (*p.at && strchr(size1, *p.at) && p.n > 1)
        n = 2 + (size_t)p.at[1];
    if (*p.at && strchr(size4, *p.at) && p.n > 4)
        n = 5 + (size_t)number(p.at + 1, 4);
    return *p.at && n < p.n ? n : *p.at ? p.n : 1;
}

static bytes opcode_changed(part p, int depth)
{
    static const char *const others[] = {
        "cposix\nsystem\n",       "R",   "b", "u",   "(", "t", "Q", "0", "2",
        "ctorch\nFloatStorage\n", "h\1", "o", "\201"
    };
    bytes b = empty();
    const char *other = others[dice(COUNT(others))];
    if (p.n == 1 || !dice(12))
        put(&b, other, strlen(other));
    if (p.n == 1 || !dice(8))
        return b;
    put(&b, p.at, 1);
    if (p.n <= 9 && !strchr("cXU\214", *p.at))
        put_number(&b, odd_number(number(p.at + 1, p.n - 1)), p.n - 1);
    else {
        bytes c = leaf((part){ p.at + 1, p.n - 1 });
        put(&b, c.at, dice(3) ? p.n - 1 < c.n ? p.n - 1 : c.n : c.n);
        free(c.at);
    }
    (void)depth;
    return b;
}

static int opcodes(part p, part *o, int most)
{
    int n = 0;
    for (size_t k; p.n && n < most; p.at += k, p.n -= k)
        o[n++] = (part){ p.at, k = opcode_bytes(p) };
    if (n && p.n)
        o[n - 1].n += p.n;
    return n;
}

/* ---- zip ---- */
typedef struct { char name[256]; bytes is; bool deflated; } unpacked;

static bool unpack(unpacked *m, part p, const uint8_t *entry)
{
    uint64_t at = number(entry + 42, 4), packed = number(entry + 20, 4), n = number(entry + 24, 4);
    *m = (unpacked){ .deflated = entry[10] == Z_DEFLATED };
    memcpy(m->name, entry + ZIP_CENTRAL, number(entry + 28, 2) & 255);
    if (at + ZIP_LOCAL > p.n || n > ROOM ||
        (at += ZIP_LOCAL + number(p.at + at + 26, 2) + number(p.at + at + 28, 2)) > p.n || packed > p.n - at)
        return false;
    m->is = empty();
    if (!m->deflated)
        put(&m->is, p.at + at, (size_t)packed);
    else {
        z_stream z = {
            .next_in = (uint8_t *)p.at + at, .avail_in = (uInt)packed, .next_out = m->is.at, .avail_out = ROOM
        };
        inflateInit2(&z, -MAX_WBITS);
        inflate(&z, Z_FINISH);
        m->is.n = z.total_out;
        inflateEnd(&z);
    }
    return true;
}

static int unpack_all(part p, unpacked *m)
{
    int n = 0;
    for (size_t at = 0; at + ZIP_CENTRAL < p.n && n < PARTS; at++)
        if (!memcmp(p.at + at, "PK\1\2", 4) && number(p.at + at + 28, 2) < p.n - at - ZIP_CENTRAL)
            n += unpack(&m[n], p, p.at + at);
    return n;
}

/* Changes a member, or removes, repeats or renames one; then rarely a field of a header, or of the end. */
static bytes zip_mutated(part p, int depth)
{
    unpacked m[PARTS];
    member to[2 * PARTS];
    int n = unpack_all(p, m), i = (int)dice((uint64_t)n), other = (int)dice((uint64_t)n), how = (int)dice(50),
        count = 0;
    for (int tries = 0; n && tries < 20 && !(m[i].is.n > 9 && strchr("\x80\x93\211{", m[i].is.at[0]));
         tries++)
        i = (int)dice((uint64_t)n); /* a member with structure, rather than numbers */
    for (int k = 0; k < n; k++) {
        bytes old = m[k].is;
        if (k == i && how > 3) {
            m[k].is = mutated((part){ old.at, old.n }, depth + 1);
            free(old.at);
        }
        const char *name = m[k == i && how == 0 ? other : k].name;
        for (int times = k == i && (how == 2 || how == 3) ? 2 * (how - 2) : 1; times; times--)
            to[count++] = (member){ name, m[k].is.at, m[k].is.n, m[k].deflated ^ (k == i && how == 1) };
    }
    content zip = zip_new(to, count);
    bytes b = empty();
    put(&b, zip.at, zip.n);
    free(zip.at);
    if (!dice(15) && b.n < ROOM) {
        size_t end = b.n - ZIP_END, width = 1u << dice(4),
               from = (dice(2) ? (size_t)number(b.at + end + 16, 4) : end) + dice(48);
        if (from + width <= b.n)
            zip_number(b.at + from, odd_number(number(b.at + from, width)), (int)width);
    }
    for (int k = 0; k < n; k++)
        free(m[k].is.at);
    return b;
}

/* ---- any form ---- */
static bool begins(part p, const char *with, size_t n) { return p.n > n && !memcmp(p.at, with, n); }

static bytes mutated(part p, int depth)
{
    static part parts[8][4096];
    int n;
    if (depth > 6 || !dice(100))
        return leaf(p);
    if (begins(p, "PK\3\4", 4) && depth < 2)
        return zip_mutated(p, depth);
    if (begins(p, "\211HDF", 4)) {
        bytes b = empty();
        put(&b, p.at, p.n);
        b.n = h5_mutate(b.at, b.n, ROOM, (unsigned)dice(UINT32_MAX), dice(4));
        return b;
    }
    if (begins(p, "\x93NUMPY", 6))
        return text_first(p, p.at[6] == 1 ? 10 : 12, p.at[6] == 1 ? 2 : 4);
    if (p.n > 9 && p.at[8] == '{')
        return text_first(p, 8, 8);
    if (begins(p, "\x80\2", 2) && (n = opcodes(p, parts[depth], 4096)) > 1)
        return row(parts[depth], n, opcode_changed, depth);
    if (begins(p, "{", 1))
        return text_changed(p);
    return p.n > 1 && (n = fields(p, parts[depth])) ? row(parts[depth], n, field_changed, depth) : leaf(p);
}

size_t form_mutate(uint8_t *file, size_t n, size_t most, unsigned seed)
{
    dice_seed(seed);
    bytes b = empty();
    put(&b, file, n);
    for (uint64_t times = dice(2) ? 1 : 1 + dice(3); times--;) {
        bytes c = mutated((part){ b.at, b.n }, 0);
        free(b.at);
        b = c;
    }
    n = b.n < most ? b.n : most;
    memcpy(file, b.at, n);
    free(b.at);
    return n;
}
