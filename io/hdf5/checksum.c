/* checksum.c - the checksum of the metadata of an HDF5 file: lookup3 (Jenkins 2006), little endian, as "HDF5
 * File Format Specification" 3.0 has it for object headers of version 2. */
#include <string.h>
#include "io/hdf5/session.h"

enum { WORDS = 3, BLOCK = 4 * WORDS };           /* a state has the words a, b, c; a block is added to it */

static uint32_t turned(uint32_t x, int by) { return x << by | x >> (32 - by); }

static void add(uint32_t s[WORDS], const unsigned char *bytes)
{
    for (int i = 0; i < WORDS; i++)
        s[i] += (uint32_t)weft__little(bytes + 4 * i, 4);
}

/* Changes a by c, b by a, c by b, and so on. */
static void mix(uint32_t s[WORDS])
{
    static const int turns[] = { 4, 6, 8, 16, 19, 4 };
    for (int i = 0; i < 6; i++) {
        uint32_t *x = &s[i % WORDS], *before = &s[(i + 2) % WORDS];
        *x = (*x - *before) ^ turned(*before, turns[i]);
        *before += s[(i + 1) % WORDS];
    }
}

/* Changes c by b, a by c, b by a, and so on. Returns c. */
static uint32_t end(uint32_t s[WORDS])
{
    static const int turns[] = { 14, 11, 25, 16, 4, 14, 24 };
    for (int i = 0; i < 7; i++) {
        uint32_t *x = &s[(i + 2) % WORDS], before = s[(i + 1) % WORDS];
        *x = (*x ^ before) - turned(before, turns[i]);
    }
    return s[2];
}

bool weft__h5_sum(const weft__h5 *h, size_t offset, size_t n, uint32_t *sum)
{
    uint32_t start = 0xdeadbeef + (uint32_t)n;
    uint32_t s[WORDS] = { start, start, start };
    unsigned char block[BLOCK];
    for (; n > BLOCK; offset += BLOCK, n -= BLOCK) {
        if (!weft__h5_bytes(&h->read, offset, BLOCK, block))
            return false;
        add(s, block);
        mix(s);
    }
    memset(block, 0, BLOCK);
    if (!weft__h5_bytes(&h->read, offset, n, block))
        return false;
    add(s, block);
    *sum = n ? end(s) : s[2];
    return true;
}
