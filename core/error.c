/* error.c - the sticky error: a context keeps the text of its first failure and ignores later ones. */
#include "core/inside.h"
#include "core/os.h"

static size_t layer_text(weft *w, char *text, size_t size)
{
    char name[256];
    if (!weft__notify(w, WEFT__LAYER, name))
        return 0;
    int n = snprintf(text, size, "%s: ", name);
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

void weft_fail(weft *w, weft_status status, const char *format, ...)
{
    w = w ? w : weft__no_context();
    if (w->status || status == WEFT_OK)
        return;
    size_t length = layer_text(w, inside(w)->message, sizeof inside(w)->message);
    WEFT__PLAIN_TEXT(inside(w)->message + length, sizeof inside(w)->message - length, format);
    w->status = status;
    if (!inside(w)->on_error)
        return;
    /* the failed function still runs and uses the step */
    weft__callback outer = weft__callback_begin(w, "the function of weft_on_error", NULL);
    inside(w)->on_error(status, inside(w)->message, inside(w)->on_error_user);
    weft__callback_end(w, outer);
}

weft *weft__no_context(void)
{
    static _Thread_local weft__inside none = { .w = { .no_context = true, .status = WEFT_EARG },
                                               .message = "a NULL tensor, module or context was given" };
    none.w.nil.w = &none.w;
    return &none.w;
}

/* One object for all threads, because a program may pass it to another thread and end the one that opened it.
 * Only `running` changes, which is not read in a failed context. */
weft *weft__no_memory(void)
{
    static weft__inside none = {
        .w = { .no_context = true, .status = WEFT_ENOMEM, .nil = { .w = &none.w } },
        .message = "open: no memory for a context",
    };
    return &none.w;
}

bool        weft_ok(const weft *w)      { return w && !w->status; }
weft_status weft_error_code(const weft *w)   { return w ? w->status : WEFT_EARG; }
const char *weft_error_message(const weft *w) { return w ? inside(w)->message : "no context"; }

void weft_on_error(weft *w, void (*fn)(weft_status, const char *, void *), void *user)
{
    if (w && !weft__is_no_context(w))
        inside(w)->on_error = fn, inside(w)->on_error_user = user;
}

void weft__explain(weft *w, const char *format, ...)
{
    WEFT__PLAIN_TEXT(inside(w)->message, sizeof inside(w)->message, format);
}

weft__listener *weft__mute_errors(weft *w)
{
    weft__listener *listener = inside(w)->on_error;
    inside(w)->on_error = NULL;
    return listener;
}

void weft__unmute_errors(weft *w, weft__listener *listener, bool forget)
{
    inside(w)->on_error = listener;
    if (forget) {
        w->status = WEFT_OK;
        inside(w)->message[0] = 0;
    }
}

void weft__explain_null(weft *w, const char *format, ...)
{
    WEFT__PLAIN_TEXT(inside(w)->missing, sizeof inside(w)->missing, format);
}

const char *weft_status_name(weft_status status)
{
#define NAME(name, text) #name,
    static const char *const names[] = { WEFT_STATUS_MAP(NAME) };
#undef NAME
    return (unsigned)status < WEFT_STATUSES ? names[status] : "unknown status";
}

const char *weft__handle_error(const weft *w, const weft_tensor *x)
{
    if (!x)
        return w && inside(w)->missing[0] ? inside(w)->missing : "is NULL";
    if (weft__is_no_context(x->w))
        return x->w == weft__no_memory() ? "is of a context that could not be opened" :
                                           "was returned by a function that got NULL";
    if (x->w != w)
        return "is of another context";
    if (x == &w->nil)
        return "is the result of a failed operator";
    return x->step && x->step != w->step ?
               "is of a step that has ended (weft_clear ends all tensors of a step; "
               "weft_assign to a buffer carries one over)" :
               NULL;
}

bool weft__refuse_tensor(weft *w, const weft_tensor *x, const char *format, ...)
{
    char name[WEFT__MESSAGE];
    WEFT__PLAIN_TEXT(name, sizeof name, format);
    weft__fail(w, WEFT_EARG, "%s %s", name, weft__handle_error(w, x));
    return false;
}

void weft__check_faults(weft *w, const char *source)
{
    weft__fault f = w->dev.fault;
    const char *earlier = f.by ? " of an earlier " : "", *by = f.by ? f.by : "";
    if (w->dev.failure[0])
        weft__fail(w, w->dev.status, "%s: %s", source, w->dev.failure);
    if (!f.is)
        return;
    w->dev.fault = (weft__fault){ 0 };
    if (f.below == -2)
        weft__fail(w, WEFT_EARG,
                   "%s: element %lld%s%s is out of range: a variance below 0, or a binary target "
                   "outside 0 .. 1",
                   source, (long long)f.row, earlier, by);
    if (f.below == WEFT__NO_FIT || f.below == WEFT__IS_BLANK)
        weft__fail(w, WEFT_EARG,
                   f.below == WEFT__NO_FIT ?
                       "%s: the labels of sequence %lld%s%s need %lld steps; expected that many logits" :
                       "%s: label at position %lld%s%s is %lld, the blank; expected another class",
                   source, (long long)f.row, earlier, by, (long long)f.value);
    if (f.below < 0)
        weft__fail(w, WEFT_EARG, "%s: element %lld%s%s does not fit an int32; expected %d .. %d", source,
                   (long long)f.row, earlier, by, INT32_MIN, INT32_MAX);
    weft__fail(w, WEFT_EARG, "%s: index %lld at position %lld%s%s; expected 0 .. %lld, or -1", source,
               (long long)f.value, (long long)f.row, earlier, by, (long long)f.below - 1);
}
