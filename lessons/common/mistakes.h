/* mistakes.h - names and hints of the mistakes that a lesson's check knows, from the lines
 * MISTAKE(name, hint) of the lesson's mistakes.def. Only check.c includes it. */
enum {
    RIGHT,
#define MISTAKE(name, hint) name,
#include "mistakes.def"
#undef MISTAKE
    MISTAKES
};
static const char *const hints[MISTAKES] = {
#define MISTAKE(name, hint) [name] = hint,
#include "mistakes.def"
};
