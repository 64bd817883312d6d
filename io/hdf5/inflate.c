/* inflate.c - zlib's format (RFC 1950, 1951) into memory of a size known before: what would be more ends
 * there, whatever the stream says. That is why it is here: libhdf5's own filter takes memory as long as a
 * stream goes on, and a thousandth of what it takes is enough to say so. */
#include <string.h>
#include "io/hdf5/session.h"

enum { LONGEST = 15, LENGTHS = 286, DISTANCES = 30, ORDERS = 19 };

/* By the next bits, `longest` of them, the first the lowest: symbol << 4 | bits of its code; 0: no code
 * begins so. */
typedef struct { int longest; uint16_t at[1 << LONGEST]; } codes;
struct weft__inflating {
    const unsigned char *in;
    size_t n, at;                                /* at: bytes taken into `bits`, zeros behind the end */
    uint64_t bits;
    int have;
    unsigned char *out;
    size_t size, made;
    codes length, distance;
};

/* ---- bits ---- */
static uint32_t peek(weft__inflating *z)               /* 32 bits at least */
{
    for (; z->have <= 32; z->have += 8, z->at++)
        z->bits |= (uint64_t)(z->at < z->n ? z->in[z->at] : 0) << z->have;
    return (uint32_t)z->bits;
}

static void drop(weft__inflating *z, int n)
{
    z->bits >>= n;
    z->have -= n;
}

static uint32_t take(weft__inflating *z, int n)        /* 16 at most */
{
    uint32_t v = peek(z) & ((1u << n) - 1);
    drop(z, n);
    return v;
}

static size_t taken(const weft__inflating *z) { return z->at - (size_t)z->have / 8; }

/* ---- codes ---- */
static uint32_t reversed(uint32_t code, int n)
{
    uint32_t r = 0;
    for (; n--; code >>= 1)
        r = r << 1 | (code & 1);
    return r;
}

/* From the lengths of n symbols' codes. All codes must be used up, or, where that is allowed, there is a
 * single one of one bit, or none; else false. */
static bool make(codes *c, const unsigned char *length, int n, bool single)
{
    int count[LONGEST + 1] = { 0 }, left = 1, used = 0;
    c->longest = 0;
    uint32_t next[LONGEST + 2] = { 0 };
    for (int i = 0; i < n; i++)
        count[length[i]]++;
    count[0] = 0;
    for (int bits = 1; bits <= LONGEST; bits++) {
        left = 2 * left - count[bits];
        if (left < 0)
            return false;
        next[bits + 1] = (next[bits] + (uint32_t)count[bits]) << 1;
        used += count[bits];
        c->longest = count[bits] ? bits : c->longest;
    }
    if (left > 0 && (!single || used > 1 || used != count[1]))
        return false;
    memset(c->at, 0, sizeof *c->at << c->longest);
    for (int i = 0; i < n; i++) {
        int bits = length[i];
        if (!bits)
            continue;
        for (uint32_t at = reversed(next[bits]++, bits); at < 1u << c->longest; at += 1u << bits)
            c->at[at] = (uint16_t)(i << 4 | bits);
    }
    return true;
}

static int symbol(weft__inflating *z, const codes *c)  /* -1: none */
{
    uint16_t it = c->at[peek(z) & ((1u << c->longest) - 1)];
    drop(z, it & 15);
    return it ? it >> 4 : -1;
}

/* ---- blocks ---- */
static bool stored(weft__inflating *z)
{
    drop(z, z->have % 8);
    uint32_t n = take(z, 16), complement = take(z, 16);
    size_t from = taken(z);
    if (n != (complement ^ 0xffff) || n > z->size - z->made || from > z->n || n > z->n - from)
        return false;
    memcpy(z->out + z->made, z->in + from, n);
    z->made += n;
    z->at = from + n;
    z->bits = 0;
    z->have = 0;
    return true;
}

static bool fixed_codes(weft__inflating *z)
{
    unsigned char length[LENGTHS + 2], distance[DISTANCES + 2];
    for (int i = 0; i < LENGTHS + 2; i++)
        length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distance, 5, sizeof distance);
    return make(&z->length, length, sizeof length, false) &&
           make(&z->distance, distance, sizeof distance, false);
}

/* The lengths of `all` codes, themselves in the code that z->length holds. */
static bool lengths_of_codes(weft__inflating *z, unsigned char *length, int all)
{
    for (int i = 0; i < all; ) {
        int s = symbol(z, &z->length), times = 1;
        unsigned char value = (unsigned char)s;
        if (s < 0 || (s == 16 && !i))
            return false;
        if (s == 16)
            value = length[i - 1], times = 3 + (int)take(z, 2);
        else if (s > 16)
            value = 0, times = s == 17 ? 3 + (int)take(z, 3) : 11 + (int)take(z, 7);
        if (times > all - i)
            return false;
        memset(length + i, value, (size_t)times);
        i += times;
    }
    return true;
}

static bool own_codes(weft__inflating *z)
{
    static const unsigned char order[ORDERS] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                 11, 4,  12, 3, 13, 2, 14, 1, 15 };
    enum { END = 256 };
    unsigned char length[LENGTHS + DISTANCES + 2] = { 0 };
    int lengths = 257 + (int)take(z, 5), distances = 1 + (int)take(z, 5), orders = 4 + (int)take(z, 4);
    if (lengths > LENGTHS || distances > DISTANCES)
        return false;
    for (int i = 0; i < orders; i++)
        length[order[i]] = (unsigned char)take(z, 3);
    if (!make(&z->length, length, ORDERS, false))
        return false;
    memset(length, 0, sizeof length);
    return lengths_of_codes(z, length, lengths + distances) && length[END] &&
           make(&z->length, length, lengths, true) && make(&z->distance, length + lengths, distances, true);
}

/* A stretch of what there is already, again; s: the symbol of its length. */
static bool again(weft__inflating *z, int s)
{
    static const uint16_t length[] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258 },
                          distance[] = { 1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                         33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                         1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577 };
    int k = s - 257, extra = k < 8 || k == 28 ? 0 : k / 4 - 1;
    if (k > 28)
        return false;
    size_t n = length[k] + take(z, extra);
    int d = symbol(z, &z->distance);
    if (d < 0 || d >= DISTANCES)
        return false;
    size_t back = distance[d] + take(z, d < 4 ? 0 : d / 2 - 1);
    if (back > z->made || n > z->size - z->made)
        return false;
    for (; n--; z->made++)
        z->out[z->made] = z->out[z->made - back];
    return true;
}

static bool coded(weft__inflating *z)
{
    for (int s; (s = symbol(z, &z->length)) != 256; ) {
        if (s < 0 || taken(z) > z->n)
            return false;
        if (s > 256) {
            if (!again(z, s))
                return false;
        } else if (z->made == z->size) {
            return false;
        } else {
            z->out[z->made++] = (unsigned char)s;
        }
    }
    return true;
}

static bool blocks(weft__inflating *z)
{
    for (bool last = false; !last; ) {
        last = take(z, 1);
        uint32_t kind = take(z, 2);
        bool good = kind == 0 ? stored(z) : kind == 1 ? fixed_codes(z) : kind == 2 && own_codes(z);
        if (!good || (kind && !coded(z)) || taken(z) > z->n)
            return false;
    }
    return true;
}

/* ---- the stream ---- */
static uint32_t adler32(const unsigned char *at, size_t n)
{
    enum { MODULUS = 65521, UNREDUCED = 5552 };
    uint32_t a = 1, b = 0;
    while (n) {
        size_t some = n < UNREDUCED ? n : UNREDUCED;
        n -= some;
        for (; some--; b += a)
            a += *at++;
        a %= MODULUS, b %= MODULUS;
    }
    return b << 16 | a;
}

size_t weft__inflating_bytes(void) { return sizeof(weft__inflating); }

bool weft__inflate(weft__inflating *z, const unsigned char *in, size_t n, unsigned char *out, size_t size)
{
    enum { HEAD = 2, SUM = 4, DEFLATE = 8, WINDOW = 7, DICTIONARY = 32 };
    if (n < HEAD + SUM || (in[0] & 15) != DEFLATE || in[0] >> 4 > WINDOW || in[1] & DICTIONARY ||
        (in[0] << 8 | in[1]) % 31)
        return false;
    const unsigned char *sum = in + n - SUM;
    uint32_t said = (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3];
    z->in = in + HEAD, z->n = n - HEAD - SUM, z->at = 0;
    z->bits = 0, z->have = 0;
    z->out = out, z->size = size, z->made = 0;
    return blocks(z) && z->made == size && taken(z) == z->n && adler32(out, size) == said;
}
