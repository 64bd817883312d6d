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
#undef MISTAKE
};
static const char *const names_of_hints[MISTAKES] = {
#define MISTAKE(name, hint) [name] = #name,
#include "mistakes.def"
};
void lesson_mistakes(int n, const char *const *names, const char *const *hints);
static void __attribute__((constructor)) know_mistakes(void)
{
    lesson_mistakes(MISTAKES, names_of_hints, hints);
}
