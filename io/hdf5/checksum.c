/* checksum.c - the checksum of the metadata of an HDF5 file: lookup3 (Jenkins 2006), little endian, as "HDF5
 * File Format Specification" 3.0 has it for object headers of version 2. */
#include <string.h>
#include "io/hdf5/session.h"

enum { BLOCK = 12 };                             /* bytes of one mixing: three words */
typedef struct { uint32_t a, b, c; } state;

static uint32_t turned(uint32_t x, int by) { return x << by | x >> (32 - by); }

static void add(state *s, const unsigned char *bytes)
{
    uint32_t *word[] = { &s->a, &s->b, &s->c };
    for (int i = 0; i < 3; i++, bytes += 4)
        *word[i] += (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                    (uint32_t)bytes[3] << 24;
}

/* One step of mixing: subtracts y from x, and adds z to y. */
static void step(uint32_t *x, uint32_t *y, const uint32_t *z, int by)
{
    *x -= *y;
    *x ^= turned(*y, by);
    *y += *z;
}

static void mix(state *s)
{
    step(&s->a, &s->c, &s->b, 4);
    step(&s->b, &s->a, &s->c, 6);
    step(&s->c, &s->b, &s->a, 8);
    step(&s->a, &s->c, &s->b, 16);
    step(&s->b, &s->a, &s->c, 19);
    step(&s->c, &s->b, &s->a, 4);
}

static void fold(uint32_t *x, uint32_t y, int by) { *x = (*x ^ y) - turned(y, by); }

static uint32_t end(state *s)
{
    fold(&s->c, s->b, 14);
    fold(&s->a, s->c, 11);
    fold(&s->b, s->a, 25);
    fold(&s->c, s->b, 16);
    fold(&s->a, s->c, 4);
    fold(&s->b, s->a, 14);
    fold(&s->c, s->b, 24);
    return s->c;
}

bool weft__h5_sum(const weft__h5_image *image, size_t offset, size_t n, uint32_t *sum)
{
    uint32_t start = 0xdeadbeef + (uint32_t)n;
    state s = { start, start, start };
    unsigned char block[BLOCK];
    for (; n > BLOCK; offset += BLOCK, n -= BLOCK) {
        if (!weft__h5_bytes(image, offset, BLOCK, block))
            return false;
        add(&s, block);
        mix(&s);
    }
    memset(block, 0, BLOCK);
    if (!weft__h5_bytes(image, offset, n, block))
        return false;
    add(&s, block);
    *sum = n ? end(&s) : s.c;
    return true;
}
