/* leak.c - a planted bug: a test that forgets memory. The net is the sanitizer's log, since Criterion lets
 * it pass. */
#include "../check.h"

static void *volatile forgotten;

Test(planted, leak)
{
    forgotten = malloc(9);
    forgotten = NULL;
    cr_assert(1);
}
