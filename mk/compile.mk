# compile.mk - flags, and the rule that compiles C files.
CFLAGS   ?= -O2 -g
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(if $(WERROR),-Werror)
WARN_LIB := -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wvla
# Float is computed as float: in ISO C, compilers for s390x use double, and those for i386 the x87.
MACHINE  := $(shell $(CC) -dumpmachine)
MACOS    := $(findstring darwin,$(MACHINE))$(findstring macos,$(MACHINE))
ZIG      := $(findstring zig,$(CC))
ARCH     := $(if $(filter s390%,$(MACHINE)),-fexcess-precision=fast)
ifneq ($(filter i%86-linux-gnu,$(MACHINE)),)
ARCH     := -msse2 -mfpmath=sse -Wno-psabi -D_FILE_OFFSET_BITS=64
endif
BASE     := -std=c11 -D_GNU_SOURCE -I. $(ARCH) $(WARN)
ALL       = $(BASE) $(CPPFLAGS) $(CFLAGS) $(VFLAGS) $(EXTRA) -MMD -MP
LINK      = $(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS)
JANSSON   = $(filter -L%,$(LIBS)) -ljansson

# ---- variants ----
SANITIZE      := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1
VFLAGS_double := -DWEFT_DOUBLE
VFLAGS_asan   := $(SANITIZE)
VFLAGS_dasan  := $(SANITIZE) -DWEFT_DOUBLE
VFLAGS_tsan   := -fsanitize=thread -O1 -g1
VFLAGS        := $(VFLAGS_$(V)) $(if $(IO),-DWEFT_IO_NONE -fno-asynchronous-unwind-tables)
SANITIZED     := $(findstring sanitize,$(VFLAGS))
# The double library has its own name and symbol version, so both libraries can be installed together and used in one
# process. In the build folder its files have the plain names.
F64           := $(if $(filter -DWEFT_DOUBLE,$(VFLAGS)),_f64)

# ---- the shared library ----
LIBWEFT   = $(B)/libweft.$(if $(MACOS),dylib,so)
SONAME    = libweft$(F64).$(if $(MACOS),$(SOVERSION).dylib,so.$(SOVERSION))
ifeq ($(MACOS),)
EXPORTS   = 's/^WEFT_@SOVERSION@/WEFT$(if $(F64),_F64)_$(SOVERSION)/'
SO_FLAGS  = -shared -Wl,-soname,$(SONAME),--version-script,$(B)/weft.map,--as-needed
SO_FLAGS += $(if $(SANITIZED),,-Wl,-z,defs)
else
EXPORTS   = -n 's/.*global: \(.*\);/_\1/p'
SO_FLAGS  = -dynamiclib -Wl,-install_name,@rpath/$(SONAME),-exported_symbols_list,$(B)/weft.map
endif

# ---- changed flags compile everything again ----
# The tests use internal functions; weft.map hides them in the installed library.
VISIBLE := $(if $(MACOS),,-fvisibility=protected)
STAMP := $(strip $(VISIBLE) $(CC) $(filter-out -Werror,$(BASE)) $(CPPFLAGS) $(CFLAGS) $(VFLAGS))
ifneq ($(STAMP),$(file <$(B)/flags))
$(shell mkdir -p $(B))$(file >$(B)/flags,$(STAMP))
endif

# Records of `weft lab` name the commit; "+": with changes. A tarball has none.
COMMIT := $(shell test -e .git && git describe --always --abbrev=12 --exclude='*' --dirty=+ 2>/dev/null)
ifneq (commit $(COMMIT),$(file <$(B)/commit))
$(shell mkdir -p $(B))$(file >$(B)/commit,commit $(COMMIT))
endif
$(B)/tools/lab/record.o: $(B)/commit
$(B)/tools/lab/record.o: EXTRA += $(if $(COMMIT),-DWEFT_COMMIT='"$(COMMIT)"')

# ---- Debian packages, installed if they are missing and the user may install ----
$(BUILD)/.needs-%: tests/deps.sh
	@mkdir -p $(@D)
	@sh tests/deps.sh $*
	@touch $@
# Installs the tests' packages before anything is compiled.
$(OBJ) lesson-library: | $(if $(filter test check,$(MAKECMDGOALS)),$(BUILD)/.needs-test)

# ---- objects ----
$(OBJ): EXTRA = -fPIC $(VISIBLE) $(WARN_LIB)
$(B)/io/%.o $(B)/rnn/forecast/series/%.o $(B)/tests/%.o $(B)/tools/%.o: CPPFLAGS += $(HDF5)
# Tests at -O0 compile in a quarter of the time. The plain variant uses -O1, which finds more warnings.
$(B)/tests/%.o: EXTRA += -fPIC $(if $(V),-O0,-O1)

# SIMD kernels use -O3. Sanitizer builds use -O1, which compiles three times as fast, or -O0 for instruction sets that
# this CPU lacks, which is five times faster again.
TIER       := $(if $(SANITIZED),-O1,-O3) -ffp-contract=fast
unless_run  = $(if $(SANITIZED),$(shell grep -qs $(1) /proc/cpuinfo && echo -O1 || echo -O0),-O3) -ffp-contract=fast
TIER_512   := $(call unless_run,avx512f)
TIER_AMX   := $(call unless_run,amx_tile)
AMX        := -mamx-tile -mamx-bf16
LEVEL      := $(if $(ZIG),-mcpu=x86_64_v,-march=x86-64-v)
if_known    = $(shell $(CC) $(1) -x c -E /dev/null >/dev/null 2>&1 && echo $(1))
$(B)/core/cpu/generic.o: EXTRA += $(TIER)
ifneq ($(filter x86_64%,$(MACHINE)),)
$(B)/core/cpu/avx2.o $(B)/core/cpu/amx_emulated.o: EXTRA += $(TIER) $(LEVEL)3
$(B)/core/cpu/avx512.o: EXTRA += $(TIER_512)
$(B)/core/cpu/amx.o: EXTRA += $(TIER_AMX)
$(B)/core/cpu/avx512.o $(B)/core/cpu/amx.o: EXTRA += $(LEVEL)4 -mprefer-vector-width=512
$(B)/core/cpu/amx.o: EXTRA += $(call if_known,$(AMX))
else
$(B)/core/cpu/amx_emulated.o $(B)/core/cpu/neon_bf16.o: EXTRA += $(TIER)
endif
ifneq ($(filter aarch64% arm64%,$(MACHINE)),)
BF16       := $(if $(ZIG),-mcpu=generic+v8_2a+bf16,-march=armv8.2-a+bf16)
$(B)/core/cpu/neon_bf16.o: EXTRA += $(call if_known,$(BF16))
endif
# Random numbers have the same bits everywhere (core/shared/normal.h), so products are not fused with additions.
$(B)/core/random.o: EXTRA += -ffp-contract=off

$(B)/%.o: %.c $(B)/flags | $(if $(IO),,$(BUILD)/.needs-build)
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(ALL) -c -o $@ $<
# objects compiles every C source without linking. With CFLAGS=-fsyntax-only it only checks them.
PROGRAM_SRC = $(wildcard examples/*.c examples/*/*.c tools/*.c tools/*/*.c bench/*.c bench/*/*.c tests/*/*.c)
objects: $(OBJ) $(patsubst %.c,$(B)/%.o,$(filter-out %/exchange.c,$(PROGRAM_SRC)))
