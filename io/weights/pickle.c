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
    const struct opcode *op;
    uint64_t n;                                  /* its operand: a number, or the number of bytes */
    const unsigned char *bytes;
    const weft__value *item;                     /* values from the stack, valid until the next push */
    size_t items;
    weft__value *stack, *memo;
    size_t depth, memos, memo_room;
    int foreigners;                              /* facts about functions that were not called */
    bool done;
} machine;

/* An opcode and the number of its operand's bytes; with COUNTS the operand is the number of bytes after it.
 * `values`: how many values it takes from the stack; MARKED: those above the last mark, and the mark. tag:
 * the kind of value that it makes or extends. */
enum { COUNTS = 16, MARKED = -1 };
struct opcode { void (*act)(machine *); unsigned char operand; signed char values; weft__tag tag; };

/* Fails with the reason unless the condition holds, and returns it. */
static bool expect(machine *m, bool condition, const char *reason)
{
    if (!condition)
        weft__weights_fail(m->w, WEFT_EFORMAT, "data.pkl: opcode 0x%02x at offset %zu: %s; the file is "
                           "damaged or was not written by torch.save", m->code[m->start], m->start, reason);
    return condition;
}

/* ---- the stack ---- */
static void push(machine *m, weft__value v)
{
    if (expect(m, m->depth < STACK, "found more than 65536 values on the stack"))
        m->stack[m->depth++] = v;
}

/* Sets item and items to the values that the opcode takes. */
static bool take(machine *m, int values)
{
    size_t first = m->depth, n = values == MARKED ? STACK : (size_t)values;
    while (first && m->stack[first - 1].tag != WEFT__P_MARK && m->depth - first < n)
        first--;
    m->item = m->stack + first;
    m->items = m->depth - first;
    m->depth = values == MARKED && first ? first - 1 : first;
    return values == MARKED ? expect(m, first, "found no mark on the stack") :
                              expect(m, m->items == n, "found an empty stack; expected a value");
}

static weft__value new_items(machine *m, weft__tag tag, const weft__value *item, size_t n)
{
    weft__items *all = weft__weights_memory(m->w, sizeof *all + n * sizeof *item);
    if (all)
        *all = (weft__items){ (weft__value *)(all + 1), n, n, false };
    if (all && n)
        memcpy(all->item, item, n * sizeof *item);
    return (weft__value){ .tag = tag, .items = all };
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

/* ---- functions and types ---- */
enum { TENSOR = 32, PARAMETER, FROM_TYPE, SIZE, DICTIONARY };

static const struct { const char *name; int number; } globals[] = { /* a function, or a weft__number */
    { "torch._utils._rebuild_tensor_v2", TENSOR }, { "torch._utils._rebuild_tensor_v3", TENSOR },
    { "torch._utils._rebuild_parameter", PARAMETER },
    { "torch._utils._rebuild_parameter_with_state", PARAMETER },
    { "torch._tensor._rebuild_from_type_v2", FROM_TYPE }, { "torch.Size", SIZE },
    { "collections.OrderedDict", DICTIONARY }, { "collections.defaultdict", DICTIONARY },
    { "torch.HalfStorage", WEFT__F16 }, { "torch.BFloat16Storage", WEFT__BF16 },
    { "torch.FloatStorage", WEFT__F32 }, { "torch.DoubleStorage", WEFT__F64 },
    { "torch.CharStorage", WEFT__I8 }, { "torch.ShortStorage", WEFT__I16 },
    { "torch.IntStorage", WEFT__I32 }, { "torch.LongStorage", WEFT__I64 },
    { "torch.ByteStorage", WEFT__U8 }, { "torch.BoolStorage", WEFT__U8 },
    { "torch.uint16", WEFT__U16 }, { "torch.uint32", WEFT__U32 }, { "torch.uint64", WEFT__U64 },
    { "torch.ComplexFloatStorage", WEFT__ODD }, { "torch.ComplexDoubleStorage", WEFT__ODD },
    { "torch.storage.UntypedStorage", WEFT__CHARS },
};

int weft__value_number(const weft__value *v)
{
    return v->tag == WEFT__P_GLOBAL && v->whole < TENSOR ? (int)v->whole : -1;
}

static void push_global(machine *m, const char *module, size_t n, const char *name, size_t k)
{
    const char *text = weft__weights_print(m->w, "%.*s.%.*s", (int)n, module, (int)k, name);
    for (const char *p = text; *p; p++)          /* messages and facts show the name */
        expect(m, *p > ' ' && *p <= '~', "found a name that is not of plain letters");
    weft__value v = { .tag = WEFT__P_FOREIGN, .text = text };
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (!strcmp(text, globals[i].name))
            v = (weft__value){ .tag = WEFT__P_GLOBAL, .whole = globals[i].number };
    push(m, v);
}

/* Adds a fact for each function that Python would have called. */
static void report_foreign(machine *m, const char *name)
{
    static const char key[] = "not called";
    bool known = false;
    for (int64_t i = 0; i < m->w->facts; i++)
        known = known || (m->w->fact[i].key == key && !strncmp(m->w->fact[i].value, name, 100));
    if (!known && m->foreigners++ < FOREIGNERS)
        weft__weights_fact(m->w, key, "%.100s", name);
}

static weft__value call(machine *m, weft__value f, weft__items *arguments)
{
    const weft__value *item = arguments->item;
    int64_t function = f.tag == WEFT__P_GLOBAL ? f.whole : 0;
    size_t n = arguments->n;
    if (function == DICTIONARY)
        return new_items(m, WEFT__P_DICT, NULL, 0);
    if (n >= 3 && function == FROM_TYPE && item[0].tag == WEFT__P_GLOBAL && item[0].whole == TENSOR &&
        item[2].tag == WEFT__P_TUPLE)
        return call(m, item[0], item[2].items);
    if (n >= 4 && function == TENSOR && item[0].tag == WEFT__P_STORAGE)
        return (weft__value){ .tag = WEFT__P_TENSOR, .items = arguments };
    if (n && (function == PARAMETER || function == SIZE))
        return item[0];
    if (expect(m, f.tag == WEFT__P_FOREIGN, "found no function, or wrong arguments of a function of PyTorch"))
        report_foreign(m, f.text);
    return f;
}

/* ---- opcodes ---- */
static void nothing(machine *m)  { (void)m; }
static void stop(machine *m)     { m->done = true; }
static void plain(machine *m)    { push(m, (weft__value){ .tag = m->op->tag }); }
static void integer(machine *m)  { push(m, (weft__value){ .tag = WEFT__P_INT, .whole = (int64_t)m->n }); }
static void integer4(machine *m) { push(m, (weft__value){ .tag = WEFT__P_INT, .whole = (int32_t)m->n }); }
static void collect(machine *m)  { push(m, new_items(m, m->op->tag, m->item, m->items)); }
static void text(machine *m)
{
    push(m, (weft__value){ .tag = WEFT__P_TEXT, .n = (uint32_t)m->n, .text = (const char *)m->bytes });
}

static void long_integer(machine *m)             /* little-endian, any number of bytes */
{
    uint64_t n = m->n && m->bytes[m->n - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = (size_t)m->n; i-- && m->n <= 8; )
        n = n << 8 | m->bytes[i];
    push(m, (weft__value){ .tag = m->n > 8 ? WEFT__P_OTHER : WEFT__P_INT, .whole = (int64_t)n });
}

static void real_number(machine *m)              /* big-endian */
{
    uint64_t bits = __builtin_bswap64(m->n);
    weft__value v = { .tag = WEFT__P_REAL };
    memcpy(&v.real, &bits, sizeof bits);
    push(m, v);
}

/* Adds items to the list or the dictionary below them. Foreign objects drop theirs. */
static void extend(machine *m)
{
    const weft__value *into = m->depth ? &m->stack[m->depth - 1] : NULL;
    weft__items *all = into && into->tag == m->op->tag ? into->items : NULL;
    if (into && into->tag == WEFT__P_FOREIGN)
        return;
    bool fits = all && (into->tag != WEFT__P_DICT || m->items % 2 == 0);
    if (expect(m, fits, "found items that do not fit their object") && m->items &&
        (all->item = grown(m, all->item, all->n, m->items, &all->room))) {
        memcpy(all->item + all->n, m->item, m->items * sizeof *m->item);
        all->n += m->items;
    }
}

static void global(machine *m)                   /* two lines: module and name */
{
    const char *first = (const char *)m->code + m->next, *end = (const char *)m->code + m->size;
    const char *second = memchr(first, '\n', (size_t)(end - first));
    const char *last = second ? memchr(second + 1, '\n', (size_t)(end - second - 1)) : NULL;
    if (!expect(m, last, "found no end of a name"))
        return;
    m->next = (size_t)(last + 1 - (const char *)m->code);
    push_global(m, first, (size_t)(second - first), second + 1, (size_t)(last - second - 1));
}

static void stack_global(machine *m)
{
    const weft__value *module = &m->item[0], *name = &m->item[1];
    if (expect(m, name->tag == WEFT__P_TEXT && module->tag == WEFT__P_TEXT, "found no name of a function"))
        push_global(m, module->text, module->n, name->text, name->n);
}

static void reduce(machine *m)
{
    if (expect(m, m->item[1].tag == WEFT__P_TUPLE, "found a call without a tuple of arguments"))
        push(m, call(m, m->item[0], m->item[1].items));
}

static void persistent(machine *m)
{
    weft__items *id = m->item->tag == WEFT__P_TUPLE ? m->item->items : NULL;
    bool is_storage = id && id->n == 5 && id->item[2].tag == WEFT__P_TEXT;
    if (expect(m, is_storage, "found a reference that is not a storage"))
        push(m, (weft__value){ .tag = WEFT__P_STORAGE, .items = id });
}

static void put(machine *m)
{
    uint64_t index = m->op->operand ? m->n : m->memos;
    size_t i = (size_t)index;
    weft__value v = *m->item;
    push(m, v);
    /* each index needs its own opcodes */
    if (expect(m, index <= m->start, "found an index of the memo that is too large") && i >= m->memos) {
        m->memo = grown(m, m->memo, m->memos, i + 1 - m->memos, &m->memo_room);
        m->memos = i + 1;
    }
    if (!m->w->status)
        m->memo[i] = v;
}

static void get(machine *m)
{
    bool found = m->n < m->memos && m->memo[m->n].tag != WEFT__P_MARK;
    if (expect(m, found, "found an index that the memo does not have"))
        push(m, m->memo[m->n]);
}

static const struct opcode opcodes[256] = {
    [0x80] = { nothing, 1, 0, 0 }, [0x95] = { nothing, 8, 0, 0 }, ['.'] = { stop, 0, 1, 0 },
    ['0'] = { nothing, 0, 1, 0 }, ['b'] = { nothing, 0, 1, 0 }, ['('] = { plain, 0, 0, WEFT__P_MARK },
    ['N'] = { plain, 0, 0, WEFT__P_OTHER }, ['B'] = { plain, 4 | COUNTS, 0, WEFT__P_OTHER },
    [0x88] = { plain, 0, 0, WEFT__P_OTHER }, ['C'] = { plain, 1 | COUNTS, 0, WEFT__P_OTHER },
    [0x89] = { plain, 0, 0, WEFT__P_OTHER }, [0x8A] = { long_integer, 1 | COUNTS, 0, 0 },
    ['K'] = { integer, 1, 0, 0 }, ['M'] = { integer, 2, 0, 0 }, ['J'] = { integer4, 4, 0, 0 },
    ['G'] = { real_number, 8, 0, 0 }, ['X'] = { text, 4 | COUNTS, 0, 0 }, [0x8C] = { text, 1 | COUNTS, 0, 0 },
    [')'] = { collect, 0, 0, WEFT__P_TUPLE }, [']'] = { collect, 0, 0, WEFT__P_LIST },
    ['}'] = { collect, 0, 0, WEFT__P_DICT }, ['t'] = { collect, 0, MARKED, WEFT__P_TUPLE },
    [0x85] = { collect, 0, 1, WEFT__P_TUPLE }, [0x86] = { collect, 0, 2, WEFT__P_TUPLE },
    [0x87] = { collect, 0, 3, WEFT__P_TUPLE }, ['a'] = { extend, 0, 1, WEFT__P_LIST },
    ['e'] = { extend, 0, MARKED, WEFT__P_LIST }, ['s'] = { extend, 0, 2, WEFT__P_DICT },
    ['u'] = { extend, 0, MARKED, WEFT__P_DICT }, ['c'] = { global, 0, 0, 0 },
    [0x93] = { stack_global, 0, 2, 0 }, ['R'] = { reduce, 0, 2, 0 }, [0x81] = { reduce, 0, 2, 0 },
    ['Q'] = { persistent, 0, 1, 0 }, ['q'] = { put, 1, 1, 0 }, ['r'] = { put, 4, 1, 0 },
    [0x94] = { put, 0, 1, 0 }, ['h'] = { get, 1, 0, 0 }, ['j'] = { get, 4, 0, 0 },
};

static bool read_operand(machine *m)
{
    size_t width = m->op->operand % COUNTS, left = m->size - m->next;
    bool counts = m->op->operand >= COUNTS;
    m->n = width <= left ? weft__little(m->code + m->next, width) : 0;
    bool inside = width <= left && (!counts || m->n <= left - width);
    if (!expect(m, inside, "found the end of the file in its argument"))
        return false;
    m->bytes = m->code + m->next + width;
    m->next += width + (counts ? (size_t)m->n : 0);
    return true;
}

bool weft__pickle_read(weft__weights *w, const weft__member *from, weft__value *out)
{
    machine m = { .w = w, .code = from->bytes, .size = from->size };
    m.stack = weft__weights_memory(w, STACK * sizeof *m.stack);
    while (!m.done && !w->status) {
        m.start = m.next++;
        m.op = m.start < m.size ? &opcodes[m.code[m.start]] : NULL;
        if (!m.op)
            weft__weights_fail(w, WEFT_EFORMAT, "data.pkl: its %zu bytes end without a value; the file is "
                               "incomplete: copy or save it again", m.size);
        else if (expect(&m, m.op->act, "found an opcode that torch.save does not write") &&
                 read_operand(&m) && take(&m, m.op->values))
            m.op->act(&m);
    }
    if (!w->status)
        *out = *m.item;
    return !w->status;
}
