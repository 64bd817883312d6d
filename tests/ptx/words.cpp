/* words.cpp - splits PTX into words and finds the kernels, functions and variables of a file. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/ptx/words.h"

namespace ptx {
void fail(const char *format, ...)
{
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    throw Failure{ text };
}

/* ---- words ---- */
static bool in_word(const char *p, const char *end)
{
    return isalnum((unsigned char)*p) || strchr("_$%.", *p) || (*p == ':' && p + 1 < end && p[1] == ':') ||
           (*p == ':' && p[-1] == ':');
}

static void skip_blanks(Words &w)
{
    while (w.p < w.end) {
        if (*w.p == '/' && w.p + 1 < w.end && w.p[1] == '/')
            while (w.p < w.end && *w.p != '\n')
                w.p++;
        else if (isspace((unsigned char)*w.p))
            w.line += *w.p++ == '\n';
        else
            return;
    }
}

Words::Words(const Text &t, const Text::Body &b)
    : p(t.source.data() + b.position), end(t.source.data() + t.source.size()), line(b.line)
{
}

std::string Words::take()
{
    skip_blanks(*this);
    const char *from = p;
    if (p == end)
        return "";
    if (*p == '"') {
        while (++p < end && *p != '"') {}
        return p++, std::string(from, p);
    }
    if (*p == '-')
        p++;
    if (!in_word(p, end))
        return std::string(from, ++p);
    while (p < end && in_word(p, end))
        p++;
    return std::string(from, p);
}

bool Words::skip(const char *word)
{
    Words before = *this;
    if (take() == word)
        return true;
    *this = before;
    return false;
}

void Words::expect(const char *word)
{
    std::string found = take();
    if (found != word)
        fail("expected %s, found %s", word, found.c_str());
}

bool is_number(const std::string &word) { return isdigit((unsigned char)word[word[0] == '-']); }

uint64_t number(const std::string &word)
{
    const char *s = word.c_str();
    char *end;
    bool real = s[0] == '0' && strchr("fFdD", s[1]) && s[1], minus = *s == '-';
    uint64_t bits = real ? strtoull(s + 2, &end, 16) : strtoull(s + minus, &end, 0);
    if (*end == 'U')
        end++;
    if (*end || end == s)
        fail("%s is not a number", s);
    return minus ? 0 - bits : bits;
}

unsigned bytes_of(const std::string &type)
{
    size_t digits = type.find_first_of("0123456789");
    unsigned bits = type == ".pred"             ? 8 :
                    digits == std::string::npos ? 0 :
                                                  (unsigned)atoi(type.c_str() + digits);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
        fail("%s is not a type", type.c_str());
    return bits / 8;
}

Declared declared(Words &w)
{
    Declared d = { "", 0, 0, false };
    std::string word = w.take();
    for (; word[0] == '.'; word = w.take()) {
        if (word == ".ptr") { /* attributes of a pointer's target; unused */
            while (w.skip(".global") || w.skip(".shared")) {}
            if (w.skip(".align"))
                w.take();
        } else if (word == ".align")
            d.align = number(w.take());
        else
            d.bytes = bytes_of(word);
    }
    d.name = word;
    if (!d.align)
        d.align = d.bytes;
    if (!w.skip("["))
        return d;
    if (w.skip("]"))
        return d.open = true, d;
    d.bytes *= number(w.take());
    w.expect("]");
    return d;
}

/* ---- a text ---- */
static void skip_body(Words &w) /* starts after the first brace */
{
    for (unsigned depth = 1; depth;) {
        skip_blanks(w);
        if (w.p == w.end)
            fail("a body without a closing brace");
        depth += *w.p == '{';
        depth -= *w.p == '}';
        w.p++;
    }
}

static void constant_table(Text &t, Words &w) /* .global: a table of constants */
{
    Declared d = declared(w);
    std::vector<char> &bytes = t.globals[d.name];
    bytes.resize(d.bytes);
    if (w.skip("=")) {
        w.expect("{");
        size_t i = 0;
        do
            bytes.at(i++) = (char)number(w.take());
        while (w.skip(","));
        w.expect("}");
    }
    w.expect(";");
}

static void shared(Text &t, Words &w)
{
    Declared d = declared(w);
    t.shared[d.name] = Text::Shared{ d.bytes, d.align, d.open };
    w.expect(";");
}

static void body(Text &t, Words &w, bool entry) /* NAME(..) .. {..}, or a declaration */
{
    Text::Body position = { (size_t)(w.p - t.source.data()), w.line };
    std::string word, name;
    while ((word = w.take()) != "{" && word != ";") {
        if (word.empty())
            fail("a kernel without a body");
        if (word == "(" && !entry) /* a function's result precedes its name */
            while (w.take() != ")") {}
        else if (name.empty()) {
            name = word;
            position = entry ? Text::Body{ (size_t)(w.p - t.source.data()), w.line } : position;
        }
    }
    if (word == ";")
        return;
    (entry ? t.entries : t.functions)[name] = position;
    skip_body(w);
}

void index_text(Text &t)
{
    Words w(t, Text::Body{ 0, 1 });
    try {
        for (std::string word = w.take(); !word.empty(); word = w.take()) {
            if (word == ".entry" || word == ".func")
                body(t, w, word == ".entry");
            else if (word == ".shared")
                shared(t, w);
            else if (word == ".global")
                constant_table(t, w);
            else if (word == ".version" || word == ".target" || word == ".address_size")
                while (w.p < w.end && *w.p != '\n')
                    w.p++;
            else if (word != ".visible" && word != ".extern" && word != ".weak")
                fail("unexpected %s at the top level", word.c_str());
        }
    } catch (const Failure &f) {
        fail("%s:%u: %s", t.path.c_str(), w.line, f.message.c_str());
    }
}
} // namespace ptx
