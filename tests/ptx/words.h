/* words.h - splits PTX text into words. */
#ifndef WEFT_PTX_WORDS_H
#define WEFT_PTX_WORDS_H
#include "tests/ptx/ptx.h"

namespace ptx {
struct Words {
    const char *p, *end;
    unsigned line;
    Words(const Text &, const Text::Body &);
    std::string take();                          /* skips comments and blanks; "" at the end */
    bool skip(const char *word);                 /* takes the word if it is next */
    void expect(const char *word);
};
bool     is_number(const std::string &word);
uint64_t number(const std::string &word);        /* as bits: 0f3F800000 is 1.0f */

/* [.align N] TYPE NAME[[COUNT]] */
struct Declared { std::string name; size_t bytes, align; bool open; };   /* open: NAME[], any size */
Declared declared(Words &);
unsigned bytes_of(const std::string &type);      /* ".f32": 4 */
} // namespace ptx
#endif
