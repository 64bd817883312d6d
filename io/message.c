/* message.c - the text of this thread's last file function that failed. It belongs to the thread and not to a
 * context, since files are read and written where there is none yet, and since their failures leave the
 * contexts only. */
#include <stdarg.h>
#include <string.h>
#include "core/locale.h"
#include "io/io.h"

static _Thread_local char message[1024];

const char *weft_file_message(void) { return message; }

weft_status weft__file_fail(weft_status status, const char *format, ...)
{
    char text[sizeof message];                   /* an argument may be the message before */
    va_list list;
    va_start(list, format);
    weft__plain_text(text, sizeof text, format, list);
    va_end(list);
    memcpy(message, text, sizeof message);
    return status;
}
