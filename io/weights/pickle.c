/* pickle.c - evaluates the pickle of a PyTorch file without Python.
 *
 * A pickle is a program for a stack machine. This machine has the opcodes that torch.save writes. It calls no
 * function: those in `globals` rearrange values, and all others give a FOREIGN value. */
#include <string.h>
#include "io/weights/pickle.h"

enum { STACK = 1 << 16, FOREIGNERS = 8 };

typedef struct {
    weft__weights *w;
    const unsigned char *code;
    size_t size, start, next;                    /* start: of the current opcode */
    uint64_t n;                                  /* its argument: a number, or the number of bytes */
    const unsigned char *bytes;
    weft__value *stack, *memo;
    size_t depth, memos, memo_room;
    int foreigners;                              /* facts about functions that were not called */
    bool done;
} machine;

static void fail(machine *m, const char *reason)
{
    weft__weights_fail(m->w, WEFT_EFORMAT, "data.pkl: opcode 0x%02x at offset %zu: %s; the file is damaged "
                       "or was not written by torch.save", m->code[m->start], m->start, reason);
}

/* ---- the stack ---- */
static void push(machine *m, weft__value v)
{
    if (m->depth == STACK)
        fail(m, "found more than 65536 values on the stack");
    else
        m->stack[m->depth++] = v;
}

static weft__value pop(machine *m)
{
    if (m->depth && m->stack[m->depth - 1].tag != WEFT__P_MARK)
        return m->stack[--m->depth];
    fail(m, "found an empty stack; expected a value");
    return (weft__value){ .tag = WEFT__P_OTHER };
}

/* Pops all values above the last mark, and the mark. They stay valid until the next push. */
static const weft__value *pop_mark(machine *m, size_t *n)
{
    size_t first = m->depth;
    while (first && m->stack[first - 1].tag != WEFT__P_MARK)
        first--;
    *n = m->depth - first;
    if (first)
        m->depth = first - 1;
    else
        fail(m, "found no mark on the stack");
    return m->stack + first;
}

static void push_items(machine *m, weft__tag tag, const weft__value *item, size_t n)
{
    weft__items *all = weft__weights_memory(m->w, sizeof *all + n * sizeof *item);
    if (!all)
        return;
    *all = (weft__items){ (weft__value *)(all + 1), n, n, false };
    if (n)
        memcpy(all->item, item, n * sizeof *item);
    push(m, (weft__value){ .tag = tag, .items = all });
}

/* Returns the array with room for n more elements; NULL after a failure. */
static weft__value *grown(machine *m, weft__value *old, size_t used, size_t n, size_t *room)
{
    if (n <= *room - used)
        return old;
    *room = 2 * (used + n) + 8;
    weft__value *more = weft__weights_memory(m->w, *room * sizeof *more);
    if (more && used)
        memcpy(more, old, used * sizeof *more);
    return more;
}

/* Adds items to a list or a dictionary. Foreign objects drop theirs. */
static void extend(machine *m, weft__tag tag, const weft__value *item, size_t n)
{
    weft__value into = pop(m);
    weft__items *all = into.items;
    if ((into.tag != tag && into.tag != WEFT__P_FOREIGN) || (tag == WEFT__P_DICT && n % 2))
        fail(m, "found items that do not fit their object");
    if (!m->w->status && into.tag == tag && n) {
        all->item = grown(m, all->item, all->n, n, &all->room);
        if (all->item)
            memcpy(all->item + all->n, item, n * sizeof *item);
        all->n += n;
    }
    if (!m->w->status)
        push(m, into);
}

/* ---- functions and types ---- */
typedef enum { NUMBERS, TENSOR, PARAMETER, FROM_TYPE, SIZE, DICTIONARY } function;

static const struct { const char *name; function function; weft__number type; } globals[] = {
    { "torch._utils._rebuild_tensor_v2", TENSOR, 0 },
    { "torch._utils._rebuild_tensor_v3", TENSOR, 0 },
    { "torch._utils._rebuild_parameter", PARAMETER, 0 },
    { "torch._utils._rebuild_parameter_with_state", PARAMETER, 0 },
    { "torch._tensor._rebuild_from_type_v2", FROM_TYPE, 0 },
    { "torch.Size", SIZE, 0 },
    { "collections.OrderedDict", DICTIONARY, 0 },
    { "collections.defaultdict", DICTIONARY, 0 },
    { "torch.HalfStorage", NUMBERS, WEFT__F16 },
    { "torch.BFloat16Storage", NUMBERS, WEFT__BF16 },
    { "torch.FloatStorage", NUMBERS, WEFT__F32 },
    { "torch.DoubleStorage", NUMBERS, WEFT__F64 },
    { "torch.CharStorage", NUMBERS, WEFT__I8 },
    { "torch.ShortStorage", NUMBERS, WEFT__I16 },
    { "torch.IntStorage", NUMBERS, WEFT__I32 },
    { "torch.LongStorage", NUMBERS, WEFT__I64 },
    { "torch.ByteStorage", NUMBERS, WEFT__U8 },
    { "torch.BoolStorage", NUMBERS, WEFT__U8 },
    { "torch.uint16", NUMBERS, WEFT__U16 },
    { "torch.uint32", NUMBERS, WEFT__U32 },
    { "torch.uint64", NUMBERS, WEFT__U64 },
    { "torch.ComplexFloatStorage", NUMBERS, WEFT__ODD },
    { "torch.ComplexDoubleStorage", NUMBERS, WEFT__ODD },
    { "torch.storage.UntypedStorage", NUMBERS, WEFT__CHARS },
};

int weft__value_number(const weft__value *v)
{
    return v->tag == WEFT__P_GLOBAL && v->whole == NUMBERS ? (int)v->n : -1;
}

static void push_global(machine *m, const char *module, size_t n, const char *name, size_t k)
{
    char *text = weft__weights_memory(m->w, n + k + 2);
    if (!text)
        return;
    snprintf(text, n + k + 2, "%.*s.%.*s", (int)n, module, (int)k, name);
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p > '~')               /* messages and facts show the name */
            fail(m, "found a name that is not of plain letters");
    weft__value v = { .tag = WEFT__P_FOREIGN, .text = text };
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (!strcmp(text, globals[i].name))
            v = (weft__value){ .tag = WEFT__P_GLOBAL, .n = globals[i].type, .whole = globals[i].function };
    push(m, v);
}

/* Adds a fact for each function that Python would have called. */
static weft__value foreign_result(machine *m, weft__value f)
{
    static const char key[] = "not called";
    bool known = false;
    for (int64_t i = 0; i < m->w->facts; i++)
        known = known || (m->w->fact[i].key == key && !strncmp(m->w->fact[i].value, f.text, 100));
    if (!known && m->foreigners++ < FOREIGNERS)
        weft__weights_fact(m->w, key, "%.100s", f.text);
    return f;
}

static weft__value call(machine *m, weft__value f, weft__items *arguments)
{
    const weft__value *item = arguments->item;
    size_t n = f.tag == WEFT__P_GLOBAL ? arguments->n : 0;
    if (f.tag == WEFT__P_FOREIGN)
        return foreign_result(m, f);
    if (f.tag == WEFT__P_GLOBAL && f.whole == DICTIONARY) {
        push_items(m, WEFT__P_DICT, NULL, 0);
        return m->w->status ? f : pop(m);
    }
    if (n >= 3 && f.whole == FROM_TYPE && item[0].tag == WEFT__P_GLOBAL && item[0].whole == TENSOR &&
        item[2].tag == WEFT__P_TUPLE)
        return call(m, item[0], item[2].items);
    if (n >= 4 && f.whole == TENSOR && item[0].tag == WEFT__P_STORAGE)
        return (weft__value){ .tag = WEFT__P_TENSOR, .items = arguments };
    if (n && (f.whole == PARAMETER || f.whole == SIZE))
        return item[0];
    fail(m, "found no function, or wrong arguments of a function of PyTorch");
    return f;
}

/* ---- opcodes ---- */
static void push_integer(machine *m, int64_t n) { push(m, (weft__value){ .tag = WEFT__P_INT, .whole = n }); }
static void mark(machine *m)     { push(m, (weft__value){ .tag = WEFT__P_MARK }); }
static void drop(machine *m)     { pop(m); }
static void other(machine *m)    { push(m, (weft__value){ .tag = WEFT__P_OTHER }); }
static void ignore(machine *m)   { (void)m; }
static void stop(machine *m)     { m->done = true; }
static void integer(machine *m)  { push_integer(m, (int64_t)m->n); }
static void integer4(machine *m) { push_integer(m, (int32_t)m->n); }
static void text(machine *m)
{
    push(m, (weft__value){ .tag = WEFT__P_TEXT, .n = (uint32_t)m->n, .text = (const char *)m->bytes });
}

static void long_integer(machine *m)             /* little-endian, any number of bytes */
{
    uint64_t n = m->n && m->bytes[m->n - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = (size_t)m->n; i-- && m->n <= 8; )
        n = n << 8 | m->bytes[i];
    if (m->n > 8)
        other(m);
    else
        push_integer(m, (int64_t)n);
}

static void real_number(machine *m)              /* big-endian */
{
    uint64_t bits = __builtin_bswap64(m->n);
    weft__value v = { .tag = WEFT__P_REAL };
    memcpy(&v.real, &bits, sizeof bits);
    push(m, v);
}

static void empty(machine *m)
{
    unsigned char c = m->code[m->start];
    push_items(m, c == ')' ? WEFT__P_TUPLE : c == ']' ? WEFT__P_LIST : WEFT__P_DICT, NULL, 0);
}

static void tuple(machine *m)
{
    size_t n;
    const weft__value *item = pop_mark(m, &n);
    push_items(m, WEFT__P_TUPLE, item, n);
}

static void small_tuple(machine *m)              /* 1 to 3 values */
{
    weft__value item[3];
    size_t n = m->code[m->start] - 0x84u;
    for (size_t i = n; i--; )
        item[i] = pop(m);
    push_items(m, WEFT__P_TUPLE, item, n);
}

static void set_item(machine *m)
{
    weft__value item[2] = { [1] = pop(m) };
    item[0] = pop(m);
    extend(m, WEFT__P_DICT, item, 2);
}

static void append_item(machine *m)
{
    weft__value item = pop(m);
    extend(m, WEFT__P_LIST, &item, 1);
}

static void add_items(machine *m)
{
    size_t n;
    const weft__value *item = pop_mark(m, &n);
    extend(m, m->code[m->start] == 'u' ? WEFT__P_DICT : WEFT__P_LIST, item, n);
}

static void global(machine *m)                   /* two lines: module and name */
{
    const char *first = (const char *)m->code + m->next, *end = (const char *)m->code + m->size;
    const char *second = memchr(first, '\n', (size_t)(end - first));
    const char *last = second ? memchr(second + 1, '\n', (size_t)(end - second - 1)) : NULL;
    if (!last) {
        fail(m, "found no end of a name");
        return;
    }
    m->next = (size_t)(last + 1 - (const char *)m->code);
    push_global(m, first, (size_t)(second - first), second + 1, (size_t)(last - second - 1));
}

static void stack_global(machine *m)
{
    weft__value name = pop(m), module = pop(m);
    if (name.tag == WEFT__P_TEXT && module.tag == WEFT__P_TEXT)
        push_global(m, module.text, module.n, name.text, name.n);
    else
        fail(m, "found no name of a function");
}

static void reduce(machine *m)
{
    weft__value arguments = pop(m), f = pop(m);
    if (arguments.tag == WEFT__P_TUPLE)
        push(m, call(m, f, arguments.items));
    else
        fail(m, "found a call without a tuple of arguments");
}

static void persistent(machine *m)
{
    weft__value id = pop(m), *item = id.tag == WEFT__P_TUPLE ? id.items->item : NULL;
    if (!item || id.items->n != 5 || item[2].tag != WEFT__P_TEXT)
        fail(m, "found a reference that is not a storage");
    else
        push(m, (weft__value){ .tag = WEFT__P_STORAGE, .items = id.items });
}

static void put(machine *m)
{
    uint64_t i = m->code[m->start] == 0x94 ? m->memos : m->n;
    weft__value v = pop(m);
    push(m, v);
    if (i > m->start)                            /* each index needs its own opcodes */
        fail(m, "found an index of the memo that is too large");
    else if (i >= m->memos) {
        m->memo = grown(m, m->memo, m->memos, (size_t)i + 1 - m->memos, &m->memo_room);
        m->memos = (size_t)i + 1;
    }
    if (!m->w->status)
        m->memo[i] = v;
}

static void get(machine *m)
{
    if (m->n < m->memos && m->memo[m->n].tag != WEFT__P_MARK)
        push(m, m->memo[m->n]);
    else
        fail(m, "found an index that the memo does not have");
}

static void (*const opcodes[256])(machine *) = {
    [0x80] = ignore, [0x95] = ignore, ['.'] = stop, ['('] = mark, ['0'] = drop, ['b'] = drop,
    ['N'] = other, [0x88] = other, [0x89] = other, ['B'] = other, ['C'] = other,
    ['K'] = integer, ['M'] = integer, ['J'] = integer4, [0x8A] = long_integer, ['G'] = real_number,
    ['X'] = text, [0x8C] = text, [')'] = empty, [']'] = empty, ['}'] = empty,
    ['t'] = tuple, [0x85] = small_tuple, [0x86] = small_tuple, [0x87] = small_tuple,
    ['a'] = append_item, ['e'] = add_items, ['s'] = set_item, ['u'] = add_items,
    ['c'] = global, [0x93] = stack_global, ['R'] = reduce, [0x81] = reduce, ['Q'] = persistent,
    ['q'] = put, ['r'] = put, [0x94] = put, ['h'] = get, ['j'] = get,
};
/* Number of bytes of the number after an opcode. COUNTS: that many bytes follow it. */
enum { COUNTS = 16 };
static const unsigned char arguments[256] = {
    [0x80] = 1, [0x95] = 8, ['K'] = 1, ['M'] = 2, ['J'] = 4, ['G'] = 8, ['q'] = 1, ['r'] = 4, ['h'] = 1,
    ['j'] = 4, [0x8A] = 1 | COUNTS, [0x8C] = 1 | COUNTS, ['C'] = 1 | COUNTS, ['X'] = 4 | COUNTS,
    ['B'] = 4 | COUNTS,
};

static bool read_argument(machine *m)
{
    unsigned argument = arguments[m->code[m->start]];
    size_t width = argument % COUNTS, left = m->size - m->next;
    m->n = 0;
    for (size_t i = width; i-- && width <= left; )
        m->n = m->n << 8 | m->code[m->next + i];
    if (width > left || (argument & COUNTS && m->n > left - width)) {
        fail(m, "found the end of the file in its argument");
        return false;
    }
    m->bytes = m->code + m->next + width;
    m->next += width + (argument & COUNTS ? (size_t)m->n : 0);
    return true;
}

bool weft__pickle_read(weft__weights *w, const weft__member *from, weft__value *out)
{
    machine m = { .w = w, .code = from->bytes, .size = from->size };
    m.stack = weft__weights_memory(w, STACK * sizeof *m.stack);
    while (!m.done && !w->status) {
        m.start = m.next++;
        if (m.start == m.size)
            weft__weights_fail(w, WEFT_EFORMAT, "data.pkl: its %zu bytes end without a value; the file is "
                               "incomplete: copy or save it again", m.size);
        else if (!opcodes[m.code[m.start]])
            fail(&m, "found an opcode that torch.save does not write");
        else if (read_argument(&m))
            opcodes[m.code[m.start]](&m);
    }
    if (!w->status)
        *out = pop(&m);
    return !w->status;
}
