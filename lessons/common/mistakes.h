/* mistakes.h - the mistakes that a lesson's check knows: their names, behind RIGHT, and their hints. The
 * lesson's mistakes.def has a line MISTAKE(name, hint) for each. For check.c. */
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
