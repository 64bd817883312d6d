/* report.c - placeholder until the page is written. */
#include "tools/plan.h"
bool report_plans(const char *file, const char *corpus, const int32_t *len, int64_t n, const planned *all,
                  int count, const char *command, bool times)
{
    (void)file, (void)corpus, (void)len, (void)n, (void)all, (void)count, (void)command, (void)times;
    return false;
}
