/* message.c - what this thread's last function of plans that failed has said. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/locale.h"
#include "plan/plan.h"

static _Thread_local char message[512];

const char *weft_plan_message(void) { return message; }

weft_status weft_plan_refuse(weft_status status, const char *format, ...)
{
    char text[sizeof message] = ""; /* an argument may be the message before */
    va_list list;
    va_start(list, format);
    if (format)
        weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    memcpy(message, text, sizeof message);
    return status;
}

void *weft__plan_memory(int64_t n, size_t bytes)
{
    void *p = n < 0 || (uint64_t)n > SIZE_MAX / 2 / bytes ? NULL : malloc(((size_t)n + 1) * bytes);
    if (!p)
        weft_plan_refuse(WEFT_ENOMEM, "plan: no memory for %lld times %zu bytes", (long long)n, bytes);
    return p;
}
