/* forms.c - mutates files with weights by their structure: members of a zip, opcodes of a pickle, fields of a
 * protobuf, texts with numbers (safetensors, .npy, JSON) and HDF5. Then it corrects lengths and CRCs, so that
 * readers accept the outer structure and see the damage inside. */
#include <zlib.h>
#include "fuzz.h"

enum { ROOM = 1 << 16, PARTS = 64 };
typedef struct {
    uint8_t *at;
    size_t n;
} bytes; /* owned, of ROOM bytes */
typedef struct {
    const uint8_t *at;
    size_t n;
} part;

static uint64_t state;
static bytes mutated(part p, int depth);

static uint64_t dice(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % (below ? below : 1);
}

static uint64_t odd_number(uint64_t now)
{
    static const uint64_t odd[] = { 0,          1,          2,         3,          127,
                                    255,        65535,      INT32_MAX, 1ull << 31, UINT32_MAX,
                                    1ull << 32, 1ull << 61, INT64_MAX, UINT64_MAX };
    switch (dice(5)) {
    case 0:
        return now ^ 1ull << dice(64);
    case 1:
        return now + 1 - 2 * dice(2);
    case 2:
        return dice(2) ? now * 2 : now / 2;
    case 3:
        return dice(dice(2) ? 10 : 300);
    default:
        return odd[dice(COUNT(odd))];
    }
}

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
static bytes text_changed(part p, int depth)
{
    static const char *const words[] = {
        "-1", "1e9", "[]", "{", "\"__metadata__\"", "9223372036854775808", "<f8", "null", "\"\\u0000\""
    };
    bytes b = empty();
    size_t from = dice(p.n), end;
    for (size_t tries = 0; tries < p.n && !(p.at[from] >= '0' && p.at[from] <= '9') && dice(8); tries++)
        from = (from + 1) % p.n;
    for (end = from; end < p.n && p.at[end] >= '0' && p.at[end] <= '9';)
        end++;
    put(&b, p.at, from);
    char digits[32];
    snprintf(digits, sizeof digits, "%llu",
             (unsigned long long)odd_number(strtoull((const char *)p.at + from, NULL, 10)));
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
    (void)depth;
    return b;
}

/* A head of `head` bytes that end in the length of a text in `width` bytes; the text; data. */
static bytes text_first(part p, size_t head, size_t width)
{
    uint64_t n = p.n < head ? 0 : number(p.at + head - width, width);
    if (!n || n > p.n - head)
        return leaf(p);
    char copy[ROOM]; /* it ends with a 0 */
    size_t kept = n < ROOM - 1 ? (size_t)n : ROOM - 1;
    memcpy(copy, p.at + head, kept);
    copy[kept] = 0;
    bytes c = text_changed((part){ (uint8_t *)copy, kept }, 0);
    bytes b = empty();
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
typedef struct {
    char name[256];
    size_t name_n;
    bytes is;
    int method;
} member;

static bool unpack(member *m, part p, const uint8_t *entry)
{
    uint64_t at = number(entry + 42, 4), packed = number(entry + 20, 4), n = number(entry + 24, 4);
    *m = (member){ .name_n = number(entry + 28, 2) & 255, .method = entry[10] };
    memcpy(m->name, entry + 46, m->name_n);
    if (at + 30 > p.n || n > ROOM ||
        (at += 30 + number(p.at + at + 26, 2) + number(p.at + at + 28, 2)) > p.n || packed > p.n - at)
        return false;
    m->is = empty();
    if (m->method != Z_DEFLATED)
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

static int members(part p, member *m)
{
    int n = 0;
    for (size_t at = 0; at + 46 < p.n && n < PARTS; at++)
        if (!memcmp(p.at + at, "PK\1\2", 4) && at + 46 + 255 < p.n + 300 &&
            number(p.at + at + 28, 2) < p.n - at - 46)
            n += unpack(&m[n], p, p.at + at);
    return n;
}

static void pack(bytes *b, bytes *directory, const member *m)
{
    bytes data = empty();
    uint64_t crc = crc32(0, m->is.at, (uInt)m->is.n), at = b->n;
    if (m->method == Z_DEFLATED) {
        z_stream z = {
            .next_in = m->is.at, .avail_in = (uInt)m->is.n, .next_out = data.at, .avail_out = ROOM
        };
        deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
        deflate(&z, Z_FINISH);
        data.n = z.total_out;
        deflateEnd(&z);
    } else
        put(&data, m->is.at, m->is.n);
    for (int central = 0; central < 2; central++) {
        bytes *to = central ? directory : b;
        put(to, central ? "PK\1\2\24\0\24\0\0\0" : "PK\3\4\24\0\0\0", central ? 10 : 8);
        put_number(to, (uint64_t)m->method, 2), put_number(to, 0x21 << 16, 4);
        put_number(to, crc, 4), put_number(to, data.n, 4), put_number(to, m->is.n, 4);
        put_number(to, m->name_n, 2), put_number(to, 0, central ? 12 : 2);
        if (central)
            put_number(to, at, 4);
        put(to, m->name, m->name_n);
    }
    put(b, data.at, data.n);
    free(data.at);
}

static bytes zip_mutated(part p, int depth)
{
    member m[PARTS];
    int n = members(p, m), i = (int)dice((uint64_t)n), other = (int)dice((uint64_t)n), how = (int)dice(50),
        count = 0;
    bytes b = empty(), directory = empty();
    for (int tries = 0; n && tries < 20 && !(m[i].is.n > 9 && strchr("\x80\x93\211{", m[i].is.at[0]));
         tries++)
        i = (int)dice((uint64_t)n); /* a member with structure, rather than numbers */
    for (int k = 0; k < n; k++) {
        bytes old = m[k].is;
        if (k == i && how > 3)
            m[k].is = mutated((part){ old.at, old.n }, depth + 1), free(old.at);
        if (k == i && how == 0)
            memcpy(m[k].name, m[other].name, sizeof m->name), m[k].name_n = m[other].name_n;
        if (k == i && how == 1)
            m[k].method ^= Z_DEFLATED;
        for (int times = k != i || how > 3 ? 1 : how - 1 < 0 ? 1 : how - 1; times > 0; times--, count++)
            pack(&b, &directory, &m[k]);
    }
    uint64_t at = b.n;
    put(&b, directory.at, directory.n);
    put(&b, "PK\5\6\0\0\0\0", 8);
    put_number(&b, (uint64_t)count, 2), put_number(&b, (uint64_t)count, 2);
    put_number(&b, directory.n, 4), put_number(&b, at, 4), put_number(&b, 0, 2);
    if (!dice(15)) { /* a field of a header, or of the end */
        size_t from = dice(2) ? (size_t)at : b.n > 22 ? b.n - 22 : 0, width = 1u << dice(4);
        from += dice(48);
        if (from + width <= b.n) {
            uint64_t v = odd_number(number(b.at + from, width));
            memcpy(b.at + from, &v, width);
        }
    }
    for (int k = 0; k < n; k++)
        free(m[k].is.at);
    free(directory.at);
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
    if (begins(p, "{", 1)) {
        bytes copy = empty();
        put(&copy, p.at, p.n < ROOM ? p.n : ROOM - 1);
        copy.at[copy.n] = 0;
        bytes b = text_changed((part){ copy.at, copy.n }, depth);
        free(copy.at);
        return b;
    }
    return p.n > 1 && (n = fields(p, parts[depth])) ? row(parts[depth], n, field_changed, depth) : leaf(p);
}

size_t form_mutate(uint8_t *file, size_t n, size_t most, unsigned seed)
{
    state = seed * 2654435761u + 12345;
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
