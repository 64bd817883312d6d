/* leak.c - a planted bug: a test leaks memory. The sanitizer's log must report it, because Criterion passes
 * the test. */
#include "../check.h"

static void *volatile forgotten;

Test(planted, leak)
{
    forgotten = malloc(9);
    forgotten = NULL;
    cr_assert(1);
}
