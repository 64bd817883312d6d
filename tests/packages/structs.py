"""structs.py - prints a C program that does not compile if a struct or an enum of the module weft differs from the headers."""
import ctypes as c
import weft
print('\n'.join(f'#include <weft/{h}>' for h in weft.HEADERS))
for name, s in vars(weft).items():
    if isinstance(s, type) and issubclass(s, (c.Structure, c.Union)) and hasattr(s, '_fields_'):
        print(f'_Static_assert(sizeof({name}) == {c.sizeof(s)}, "size of {name}");')
        for field, *_ in s._fields_:
            place = getattr(s, field)
            print(f'_Static_assert(offsetof({name}, {field}) == {place.offset} && '
                  f'sizeof((({name} *)0)->{field}) == {place.size}, "{name}.{field}");')
    elif isinstance(s, int) and name.startswith('WEFT_'):
        print(f'_Static_assert({name} == {s}, "{name}");')
