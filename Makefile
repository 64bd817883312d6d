# minimal, to be replaced: make [BUILD=dir] [V=double|asan]
V ?=
BUILD ?= build
B := $(BUILD)$(if $(V),/$(V))
VFLAGS_asan   := -fsanitize=address,undefined -fno-sanitize-recover=all -O1
VFLAGS_double := -DWEFT_DOUBLE
VFLAGS_dasan  := -DWEFT_DOUBLE $(VFLAGS_asan)
CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -fPIC -fvisibility=hidden -I. -MMD -MP $(VFLAGS_$(V)) $(shell pkg-config --cflags hdf5)
SRC := $(wildcard core/*.c autograd/*.c nn/*.c rnn/*.c io/*.c)
OBJ := $(SRC:%.c=$(B)/%.o)
LIBS = $(shell pkg-config --libs hdf5) -ldl -lm -lpthread
$(B)/libweft.a: $(OBJ) ; @rm -f $@; ar rcs $@ $^
$(B)/core/cpu_portable.o: CFLAGS += -O3 -ffp-contract=fast
$(B)/core/cpu_avx2.o: CFLAGS += -O3 -march=x86-64-v3 -ffp-contract=fast
$(B)/core/cpu_avx512.o: CFLAGS += -O3 -march=x86-64-v4 -mprefer-vector-width=512 -ffp-contract=fast
$(B)/%.o: %.c ; @mkdir -p $(@D); $(CC) $(CFLAGS) -c -o $@ $<
$(B)/tests/%: $(B)/tests/%.o $(B)/libweft.a ; $(CC) $(CFLAGS) -o $@ $^ -lcriterion -ljansson $(LIBS)
$(B)/examples/%: $(B)/examples/%.o $(B)/libweft.a ; $(CC) $(CFLAGS) -o $@ $^ $(LIBS)
.SECONDARY:
-include $(OBJ:.o=.d)
