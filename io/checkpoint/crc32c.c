/* crc32c.c - CRC-32C, eight bytes at a time with eight tables (Kounavis & Berry 2005).
 *
 * It detects every burst of up to 32 bits, and every three flipped bits in up to 268 MB. It misses one in
 * four billion other errors. */
#include "io/io.h"

static uint32_t table[8][256];                   /* table[k][b]: of byte b followed by k zero bytes */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
}

static uint32_t word(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t weft__crc32c(uint32_t before, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint32_t crc = ~before;
    pthread_once(&once, fill_table);
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t a = crc ^ word(p), b = word(p + 4);
        crc = table[7][a & 255] ^ table[6][a >> 8 & 255] ^ table[5][a >> 16 & 255] ^ table[4][a >> 24] ^
              table[3][b & 255] ^ table[2][b >> 8 & 255] ^ table[1][b >> 16 & 255] ^ table[0][b >> 24];
    }
    for (; n; n--, p++)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 255];
    return ~crc;
}
