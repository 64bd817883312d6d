/* dice.c - draws the random numbers of mutations (fuzz.h). */
#include "fuzz.h"

static uint64_t state;

void dice_seed(unsigned seed) { state = seed * 2654435761u + 12345; }

uint64_t dice(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % (below ? below : 1);
}

uint64_t odd_number(uint64_t now)
{
    static const uint64_t odd[] = {
        0, 1, 2, 3, 4, 7, 8, 16, 127, 255, 512, 4096, 65535, 65536, INT32_MAX - 1, INT32_MAX, 1u << 31,
        UINT32_MAX, 1ull << 32, 1ull << 61, INT64_MAX, UINT64_MAX
    };
    switch (dice(5)) {
    case 0:  return now ^ 1ull << dice(64);
    case 1:  return now + 1 - 2 * dice(2);
    case 2:  return dice(2) ? now * 2 : now / 2;
    case 3:  return dice(dice(2) ? 10 : 300);
    default: return odd[dice(COUNT(odd))];
    }
}
