/* words.h - a text of PTX, word by word. */
#ifndef WEFT_PTX_WORDS_H
#define WEFT_PTX_WORDS_H
#include "tests/ptx/ptx.h"

namespace ptx {
struct Words {
    const char *p, *end;
    unsigned line;
    Words(const Text &, const Text::Body &);
    std::string take();                          /* "" at the end; comments and blanks are none */
    bool skip(const char *word);                 /* if it is the next */
    void expect(const char *word);
};
bool     is_number(const std::string &word);
uint64_t number(const std::string &word);        /* the bits: 0f3F800000 is 1.0f's */

/* [.align N] TYPE NAME[[COUNT]] */
struct Declared { std::string name; size_t bytes, align; bool open; };   /* open: NAME[], of any size */
Declared declared(Words &);
unsigned bytes_of(const std::string &type);      /* ".f32": 4 */
} // namespace ptx
#endif
