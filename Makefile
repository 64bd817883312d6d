# weft: make, make test, make demo, make forecast, make slow_pack, make lab, make site, make bench, make lint, make install.
#
#   V=double|asan|dasan|tsan   a variant, in build/<variant>/ in the same shape; build/double/libweft.so is a target, too
#   BUILD=dir                  another place than build/
#   CC=clang WERROR=1          as the CI does; VERBOSE=1 shows the commands
#   NVCC= CUDA_ARCHS="80 90"   builds libweft_cuda.so, too, where nvcc is found, for these instead of 80 90 100 120; NVCC=none: not
#   PREFIX= LIBDIR= DOCDIR= DESTDIR=   of make install; V=double installs the library of doubles beside the other
#   PROGRAMS= SEED= KILLS= LONG=   of make hunt, make kill, make starve
#
# Everything is found by wildcard: a new file is a new object, a new tests/*/test_*.c a new test, a new examples/*.c a new program.
# X_*.c beside an examples/X.c belongs to that program, examples/common/ to all that want it.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif
V        ?=
BUILD    ?= build
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
DOCDIR   ?= $(PREFIX)/share/doc/weft
B        := $(BUILD)$(if $(V),/$(V))
VARIANTS := double asan dasan tsan
$(if $(filter-out $(VARIANTS),$(V)),$(error unknown variant V=$(V), there are: $(VARIANTS)))

VERSION    := $(subst $() ,.,$(shell sed -n 's/^.define WEFT_VERSION_[A-Z]* *//p' core/api_core.h))
# of 0.x every x has a contract of its own
SOVERSION  := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))
PKG_CONFIG ?= pkg-config
CFLAGS     ?= -O2 -g

SANITIZE      := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1
VFLAGS_double := -DWEFT_DOUBLE
VFLAGS_asan   := $(SANITIZE)
VFLAGS_dasan  := $(SANITIZE) -DWEFT_DOUBLE
VFLAGS_tsan   := -fsanitize=thread -O1 -g1
VFLAGS        := $(VFLAGS_$(V))
# What the library of doubles has of its own: a name, so that both are installed side by side, and a version of its symbols, so that both
# may be in one process. In a build's folder its files have the plain names, and links by which it is found.
F64           := $(if $(filter -DWEFT_DOUBLE,$(VFLAGS)),_f64)

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(if $(WERROR),-Werror)
WARN_LIB := -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wvla
BASE     := -std=c11 -D_GNU_SOURCE -I. $(WARN)
ALL       = $(BASE) $(CPPFLAGS) $(CFLAGS) $(VFLAGS) $(EXTRA) -MMD -MP
HDF5      = $(shell $(PKG_CONFIG) --cflags hdf5 zlib)
LIBS      = $(shell $(PKG_CONFIG) --libs hdf5 zlib) -ldl -lm -lpthread

# $(call found,PATTERN): files of the library, in its floors, their rooms and the rooms' rooms.
FLOORS   := core plan autograd nn io rnn parallel
found     = $(wildcard $(foreach f,$(FLOORS),$f/$(1) $f/*/$(1) $f/*/*/$(1)))
SRC      := $(filter-out parallel/mpi/%,$(call found,*.c))
HEADERS  := weft.h $(call found,api_*.h)
OBJ      := $(SRC:%.c=$(B)/%.o)
program   = $(patsubst %.c,$(B)/%,$(shell grep -lsw 'int main' $(wildcard $(1)/*.c)))
EXAMPLES := $(call program,examples)
TEST_SRC := $(wildcard tests/*/test_*.c)
ROOMS    := $(sort $(foreach t,$(TEST_SRC),$(word 2,$(subst /, ,$t))))
TESTS    := $(ROOMS:%=$(B)/tests/test_%)
TOOLS    := $(addprefix $(B)/tests/,golden tsan_main hunt/hunt parallel/ranks parallel/train parallel/carry parallel/launched)
PLANTED  := $(patsubst %.c,$(B)/%,$(wildcard tests/planted/*.c))
COMMAND  := $(B)/weft
BENCH    := $(if $(wildcard bench/weft_bench.c),$(B)/bench/weft_bench)

# The GPU's back end: a library of its own, so that weft runs where there is no CUDA. Code for each of CUDA_ARCHS, and PTX of 90 and 120
# (else of the last) for what comes later, compressed; the PTX that all of it is made from stays in ptx/. The same sources compiled by g++
# against tests/emu are what the tests open where there is no GPU.
NVCC       := $(or $(NVCC),$(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null),none)
CUDA_ARCHS ?= 80 90 100 120
CUDA_PTX   := $(or $(filter 90 120,$(CUDA_ARCHS)),$(lastword $(CUDA_ARCHS)))
CUDA_SRC   := $(wildcard cuda/*.cu)
CUDA_OBJ   := $(CUDA_SRC:%.cu=$(B)/%.o)
EMU_OBJ    := $(CUDA_SRC:%.cu=$(B)/emu/%.o) $(patsubst tests/emu/%.cpp,$(B)/emu/%.o,$(filter-out %_test.cpp %/nccl.cpp,$(wildcard tests/emu/*.cpp))) $(patsubst tests/ptx/%.cpp,$(B)/emu/ptx/%.o,$(filter-out %_test.cpp,$(wildcard tests/ptx/*.cpp)))
# As small as it gets. Whatever driver runs CUDA 13 can read that; of CUDA 12 some cannot.
CUDA_COMPRESSED := $(if $(CUDA_SRC),$(if $(shell $(NVCC) --version 2>/dev/null | grep 'release 1[3-9]'),--compress-mode=size,-Xfatbin -compress-all))
NVCC_FLAGS  = -std=c++17 -O3 -I. $(filter -D%,$(VFLAGS)) $(if $(WERROR),-Werror all-warnings) $(CUBLAS:%=-I%/include) $(CUDA_NAMES) -MMD -MP \
              $(CUDA_COMPRESSED) \
              -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers
CUDA_NAMES  = -DWEFT_CUDA_ARCHS=.$(subst $(space),.,$(strip $(CUDA_ARCHS))).
# Sources that ask for the architecture (cuda.h) are compiled for each. All others are compiled once, for the oldest, and the code of all
# architectures is made of that PTX: the one for 90 would be the same, in that for 120 nvcc would unroll loops. sm_100 has nothing that we
# use and sm_90 has not. What has no kernels needs no code.
CUDA_EACH  := $(addprefix cuda/,attention.cu device.cu recur_block.cu recur_cluster.cu recur_group.cu)
CUDA_HOST   = $(if $(CUDA_SRC),$(shell grep -L __global__ $(CUDA_SRC)))
virtual     = $(patsubst 103,90,$(patsubst 100,90,$1))
oldest      = $(call virtual,$(firstword $(filter 8%,$(CUDA_ARCHS)) $(filter 9%,$(CUDA_ARCHS)) $(CUDA_ARCHS)))
gencode     = -gencode arch=compute_$1$(comma)code=$2_$3
NVCC_EACH   = $(foreach a,$(CUDA_ARCHS),$(call gencode,$(call virtual,$a),sm,$a)) $(foreach a,$(call virtual,$(CUDA_PTX)),$(call gencode,$a,compute,$a))
NVCC_HOST   = -DWEFT_ONCE $(call gencode,$(oldest),compute,$(oldest))
NVCC_ONCE   = $(NVCC_HOST) $(foreach a,$(CUDA_ARCHS),$(call gencode,$(oldest),sm,$a))
nvcc_code   = $(if $(filter $1,$(CUDA_EACH)),$(NVCC_EACH),$(if $(filter $1,$(CUDA_HOST)),$(NVCC_HOST),$(NVCC_ONCE)))
CUDA       := $(if $(filter none,$(NVCC))$(filter asan dasan tsan,$(V)),,$(if $(CUDA_SRC),$(B)/libweft_cuda.so))

# What moves bytes between ranks, by Open MPI and by MPICH: libraries of their own, where their compilers are found. MPI=none: not.
MPICC_openmpi := $(shell command -v mpicc.openmpi)
MPICC_mpich   := $(shell command -v mpicc.mpich)
MPI           ?=
TRANSPORTS    := $(if $(filter none,$(MPI))$(filter asan dasan tsan,$(V)),,$(foreach m,openmpi mpich,$(if $(MPICC_$m),$(B)/libweft_$m.so)))

Q := $(if $(VERBOSE),,@)
say = $(if $(VERBOSE)$(findstring s,$(firstword -$(MAKEFLAGS))),@:,@echo '  $(1)  $@')

all: $(B)/libweft.a $(B)/libweft.so $(COMMAND) $(EXAMPLES) $(CUDA) $(TRANSPORTS)
everything: all $(TESTS) $(TOOLS) $(BENCH)
# Every C source, compiled and not linked: with CFLAGS=-fsyntax-only it is only read.
objects: $(OBJ) $(patsubst %.c,$(B)/%.o,$(filter-out %/exchange.c,$(wildcard examples/*.c examples/*/*.c tools/*.c tools/*/*.c bench/*.c bench/*/*.c tests/*/*.c)))

# What was compiled by another command is compiled again. Internal functions stay visible to the tests' library: weft.map hides them.
VISIBLE := -fvisibility=protected
comma := ,
space := $() $()
STAMP := $(strip $(VISIBLE) $(CC) $(filter-out -Werror,$(BASE)) $(CPPFLAGS) $(CFLAGS) $(VFLAGS))
ifneq ($(STAMP),$(file <$(B)/flags))
$(shell mkdir -p $(B))$(file >$(B)/flags,$(STAMP))
endif
CUDA_STAMP := $(strip $(NVCC) $(filter-out -Werror all-warnings,$(NVCC_FLAGS)) $(NVCC_EACH) $(NVCC_ONCE) $(CUDA_EACH) --keep)
ifneq ($(CUDA),)
ifneq ($(CUDA_STAMP),$(file <$(B)/cuda_flags))
$(shell mkdir -p $(B))$(file >$(B)/cuda_flags,$(CUDA_STAMP))
endif
endif

# Debian's packages, installed when they are missing and that is allowed.
$(BUILD)/.needs-%: tests/deps.sh
	@mkdir -p $(@D)
	@sh tests/deps.sh $*
	@touch $@

$(OBJ): EXTRA = -fPIC $(VISIBLE) $(WARN_LIB)
$(B)/io/%.o $(B)/rnn/forecast/series/%.o: CPPFLAGS += $(HDF5)
$(B)/tests/%.o $(B)/tools/%.o: CPPFLAGS += $(HDF5)
# Tests take a quarter of the time to compile if they are not optimised; of the plain variant they are, a little, for its warnings.
$(B)/tests/%.o: EXTRA += -fPIC $(if $(V),-O0,-O1)
# Kernels for tiers are optimised as far as it goes, but for a sanitizer, which would make that take three times as long; and where it will not
# run them, five times as long again.
SANITIZED := $(findstring sanitize,$(VFLAGS))
TIER      := $(if $(SANITIZED),-O1,-O3) -ffp-contract=fast
unless_run = $(if $(SANITIZED),$(shell grep -qs $(1) /proc/cpuinfo && echo -O1 || echo -O0),-O3) -ffp-contract=fast
TIER_512  := $(call unless_run,avx512f)
TIER_AMX  := $(call unless_run,amx_tile)
$(B)/core/cpu/generic.o: EXTRA += $(TIER)
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
$(B)/core/cpu/avx2.o $(B)/core/cpu/amx_emulated.o: EXTRA += $(TIER) -march=x86-64-v3
$(B)/core/cpu/avx512.o: EXTRA += $(TIER_512)
$(B)/core/cpu/amx.o: EXTRA += $(TIER_AMX)
$(B)/core/cpu/avx512.o $(B)/core/cpu/amx.o: EXTRA += -march=x86-64-v4 -mprefer-vector-width=512
$(B)/core/cpu/amx.o: EXTRA += $(shell $(CC) -mamx-tile -mamx-bf16 -x c -fsyntax-only /dev/null 2>/dev/null && echo -mamx-tile -mamx-bf16)
else
$(B)/core/cpu/amx_emulated.o: EXTRA += $(TIER)
endif

# Draws are the same bits everywhere, see core/shared/normal.h: no product is part of a fused multiplication and addition.
$(B)/core/random.o: EXTRA += -ffp-contract=off

$(B)/%.o: %.c $(B)/flags | $(BUILD)/.needs-build
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(ALL) -c -o $@ $<
$(B)/libweft.a: $(OBJ)
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcs $@ $^
$(B)/weft.map: core/install/weft.map
	@mkdir -p $(@D)
	@sed 's/^WEFT_@SOVERSION@/WEFT$(if $(F64),_F64)_$(SOVERSION)/' $< >$@
$(B)/libweft.so: $(OBJ) $(B)/weft.map
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libweft$(F64).so.$(SOVERSION),--version-script,$(B)/weft.map,--as-needed$(if $(findstring sanitize,$(VFLAGS)),,$(comma)-z$(comma)defs) \
	    -o $@ $(OBJ) $(LIBS)
	@ln -sf libweft.so $(B)/libweft$(F64).so.$(SOVERSION)

# nvcc takes minutes: the library comes first. Tests look for their packages before anything is compiled.
$(CUDA_OBJ): | $(B)/libweft.a $(B)/libweft.so
$(OBJ) lesson-library: | $(if $(filter test check,$(MAKECMDGOALS)),$(BUILD)/.needs-test)
$(B)/cuda/%.o: cuda/%.cu $(B)/cuda_flags
	@mkdir -p $(@D)
	$(call say,NVCC)
	$(Q)rm -rf $(@:.o=.kept) && mkdir -p $(@:.o=.kept) $(B)/ptx
	$(Q)$(NVCC) $(NVCC_FLAGS) $(call nvcc_code,$<) --keep --keep-dir $(@:.o=.kept) -Xptxas -v -c -o $@ $< 2>$(@:.o=.usage) || { cat $(@:.o=.usage); exit 1; }
	$(Q)rm -f $(B)/ptx/$(*F).*.ptx && for p in $(@:.o=.kept)/*.ptx; do mv $$p $(B)/ptx/$(*F).$$(sed -n 's/^.target sm_//p' $$p).ptx; done && rm -r $(@:.o=.kept)
	$(Q)cd $(B)/ptx && for a in $(call virtual,$(CUDA_ARCHS)); do [ -e $(*F).$$a.ptx ] || ln -s $(*F).$(oldest).ptx $(*F).$$a.ptx; done
$(B)/libweft_cuda.so: $(CUDA_OBJ) core/install/plugin.map
	$(call say,LINK)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(NVCC_EACH) -shared -cudart static -Xlinker --build-id -Xlinker --version-script=core/install/plugin.map -o $@ $(CUDA_OBJ) $(if $(CUBLAS),-L$(CUBLAS)/lib -l:$(notdir $(firstword $(wildcard $(CUBLAS)/lib/libcublasLt.so.*))) -Xlinker -rpath=$(CUBLAS)/lib,-lcublasLt)
	$(if $(F64),@ln -sf $(@F) $(@D)/libweft_cuda_f64.so)
EMU_FLAGS = -std=c++17 -ffp-contract=off -include tests/emu/cuda_emu.h -I. $(WARN_EMU) $(CUDA_NAMES) $(CFLAGS) $(VFLAGS) -fPIC -fvisibility=hidden -MMD -MP
WARN_EMU := -Wall -Wextra -Wno-missing-field-initializers $(if $(WERROR),-Werror)
$(B)/emu/cuda/%.o: cuda/%.cu $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(call say,EMU )
	$(Q)$(CXX) -x c++ $(EMU_FLAGS) -c -o $@ $<
$(B)/emu/ptx/%.o: tests/ptx/%.cpp $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(call say,EMU )
	$(Q)$(CXX) $(EMU_FLAGS) $(if $(SANITIZED),,-O3) -march=x86-64-v3 -ffp-contract=off -c -o $@ $<
$(B)/emu/%.o: tests/emu/%.cpp $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(call say,EMU )
	$(Q)$(CXX) $(EMU_FLAGS) -c -o $@ $<
$(B)/emu/emu_test: $(B)/emu/emu_test.o $(filter-out $(B)/emu/cuda/%,$(EMU_OBJ))
	$(call say,LINK)
	$(Q)$(CXX) $(VFLAGS) $(CFLAGS) -o $@ $^ -lpthread
$(B)/emu/ptx_test: $(B)/emu/ptx/ptx_test.o $(filter-out %/launched.o,$(filter $(B)/emu/ptx/%,$(EMU_OBJ)))
	$(call say,LINK)
	$(Q)$(CXX) $(VFLAGS) $(CFLAGS) -o $@ $^
$(B)/emu/libweft_cuda.so: $(EMU_OBJ) tests/emu/plugin.map
	$(call say,LINK)
	$(Q)$(CXX) $(VFLAGS) $(CFLAGS) -shared -Wl,--build-id,--version-script,tests/emu/plugin.map -o $@ $(EMU_OBJ) -lpthread
	$(if $(F64),@ln -sf $(@F) $(@D)/libweft_cuda_f64.so)
$(B)/emu/libnccl.so: $(B)/emu/nccl.o $(B)/emu/libweft_cuda.so
	$(call say,LINK)
	$(Q)$(CXX) $(VFLAGS) $(CFLAGS) -shared -Wl,-rpath,'$$ORIGIN' -o $@ $< -L$(@D) -l:libweft_cuda.so -lrt

$(B)/libweft_%.so: parallel/mpi/mpi.c parallel/transport.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,MPI )
	$(Q)OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(or $(MPICC_$*),mpicc.$*) $(BASE) $(CFLAGS) -fPIC -fvisibility=hidden -shared -o $@ $<
$(B)/tests/parallel/pairs.so $(B)/tests/parallel/slow.so: $(B)/tests/parallel/%.so: tests/parallel/%.c parallel/transport.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(VFLAGS) -fPIC -fvisibility=hidden -shared -o $@ $<

# Programs link the archive: tests may look inside, and a program runs wherever it lies.
.SECONDEXPANSION:
objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1).c $(1)_*.c))
$(patsubst %.c,$(B)/%.o,$(wildcard tests/*.c tests/*/*.c)): | $(BUILD)/.needs-test
$(B)/examples/common.a: $(patsubst %.c,$(B)/%.o,$(wildcard examples/common/*.c))
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcs $@ $^
$(EXAMPLES): $(B)/%: $$(call objects,$$*) $(B)/examples/common.a $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
$(COMMAND): $(patsubst %.c,$(B)/%.o,$(wildcard tools/*.c tools/*/*.c)) $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $^ $(filter -L%,$(LIBS)) -ljansson $(LIBS)
$(BENCH): $(patsubst %.c,$(B)/%.o,$(wildcard bench/*.c)) $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
# One test program for each room. It uses the library as a shared object whose internal functions are visible.
$(B)/tests/libweft_inside.so: $(OBJ)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -shared -o $@ $^ $(LIBS)
$(foreach t,$(TEST_SRC),$(eval $(B)/tests/test_$(word 2,$(subst /, ,$t)): $(B)/$(t:.c=.o)))
# Callers of all public functions, generated from the headers, see tests/api/refusals.py.
$(B)/tests/api/test_refused.o: CPPFLAGS += -I$(B)
$(B)/tests/api/test_refused.o: $(B)/tests/api/refusals.h
$(B)/tests/api/refusals.h: tests/api/refusals.py $(HEADERS) $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(Q)CC='$(CC)' python3 $< $(filter -D%,$(VFLAGS)) >$@
$(TESTS): $(B)/tests/failing_malloc.o $(B)/tests/libweft_inside.so
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(@D) -lweft_inside -Wl,-rpath,'$$ORIGIN' $(filter -L%,$(LIBS)) -lcriterion -ljansson $(LIBS)
$(PLANTED): $(B)/%: $(B)/%.o $(B)/tests/failing_malloc.o $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(filter -L%,$(LIBS)) -lcriterion -ljansson $(LIBS)
$(B)/tests/golden: $(patsubst %.c,$(B)/%.o,$(wildcard tests/golden_run/*.c))
$(B)/tests/tsan_main: $(B)/tests/tsan_main.o
$(B)/tests/parallel/ranks $(B)/tests/parallel/launched: %: %.o
$(B)/tests/parallel/train: $(B)/tests/parallel/train.o $(B)/tests/parallel/pairs.so
$(B)/tests/parallel/carry: $(B)/tests/parallel/carry.o $(B)/tests/parallel/pairs.so
$(B)/tests/hunt/hunt: $(patsubst %.c,$(B)/%.o,$(wildcard tests/hunt/*.c))
$(TOOLS): $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(filter -L%,$(LIBS)) -ljansson $(LIBS)

EMULATED  := $(B)/emu/libweft_cuda.so $(B)/emu/libnccl.so
RUN_TESTS  = B=$(B) V=$(V) CC='$(CC)' bash tests/run.sh $(filter $(B)/tests/% $(B)/emu/%_test,$^)
# make test UNITS="test_ops golden io": these alone, and only on the CPU. A unit is a file tests/ROOM/test_*.c, all of a ROOM, or one of TOOLS.
UNITS     ?=
UNIT_FILES = $(foreach u,$(UNITS),$(wildcard tests/*/$(filter test_%,$u).c tests/$u/test_*.c))
SOME_TESTS = $(sort $(foreach f,$(UNIT_FILES),$(B)/tests/test_$(word 2,$(subst /, ,$f)))) $(filter $(UNITS:%=$(B)/tests/%),$(TOOLS))
ALL_TESTS  = $(if $(filter tsan,$(V)),$(TOOLS),$(TESTS) $(TOOLS) $(COMMAND) $(EXAMPLES) $(BENCH) $(B)/bench/parallel_model $(B)/bench/stream/stream \
             $(B)/bench/growth/one_step $(B)/libweft.a $(B)/libweft.so $(TRANSPORTS)) $(EMULATED) $(B)/emu/emu_test $(if $(filter-out asan,$(V)),,$(B)/emu/ptx_test) \
             $(if $(V),,lesson-library)
test: $(if $(UNITS),$(SOME_TESTS),$(ALL_TESTS))
	@UNITS='$(UNITS)' $(if $(UNITS),,CUDA=$(abspath $(B)/emu)) $(RUN_TESTS)
# The fast tier, for each commit: Criterion's tests on the CPU, the documents' code, lint without clang-tidy.
check: $(TESTS) $(B)/libweft.a $(B)/libweft.so $(EXAMPLES) $(COMMAND)
	@FAST=1 $(RUN_TESTS)
	@$(MAKE) --no-print-directory WEFT_NO_TIDY=1 lint
# The tests of the GPU's kernels alone: emulated, or with GPU=1 on the GPU that is there.
test-cuda: $(if $(GPU),$(B)/libweft_cuda.so,$(EMULATED)) $(TESTS) $(TOOLS) $(B)/examples/g2p
	@CUDA_ONLY=1 GPU=$(GPU) CUDA=$(abspath $(dir $<)) $(RUN_TESTS)
# What is shipped is executed: the PTX of the GPU's back end, by the interpreter of tests/ptx (docs/design/cuda.md). WHOLE=1: all tests of a GPU.
test-ptx: $(EMULATED) $(if $(filter none,$(NVCC)),,$(B)/libweft_cuda.so) $(TESTS) $(TOOLS)
	@$(if $(filter none,$(NVCC)),echo "skipped: there is no nvcc here",B=$(B) WHOLE=$(WHOLE) bash tests/ptx/test.sh && bash tests/ptx/state.sh >tests/ptx/recorded)
planted-ptx: test-ptx
	@$(if $(filter none,$(NVCC)),,B=$(B) NVCC=$(NVCC) bash tests/ptx/planted.sh)
# Many ranks by Open MPI and MPICH, as far as both are here: the same bytes, and faults at MOMENTS (3) moments.
test-parallel: $(B)/examples/g2p $(TRANSPORTS)
	@sh tests/deps.sh dictionary $(BUILD)/data/cmudict.out
	@B=$(B) DICT=$(BUILD)/data/cmudict.out MOMENTS=$(MOMENTS) bash tests/parallel/engines.sh
soak: ; @WEFT_SOAK=1 $(MAKE) --no-print-directory test
planted: ; @MAKE='$(MAKE)' BUILD=$(BUILD) bash tests/nets/planted.sh
# Nets with figures, see docs/design/reliability.md: random programs in twelve ways, to the bit (PROGRAMS=300 SEED=1), kills and resumed
# runs (KILLS=20 SEED=1), every allocation failing once (LONG=1: more of it). nightly has their long forms.
hunt: $(B)/tests/hunt/hunt
	@$< $(or $(PROGRAMS),300) $(or $(SEED),1)
kill: $(B)/examples/g2p
	@B=$(B) V=$(V) KILLS='$(KILLS)' SEED='$(SEED)' bash tests/nets/kill.sh
$(B)/tests/nets/starve_malloc.so: tests/nets/starve_malloc.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(BASE) $(CFLAGS) -fPIC -shared -o $@ $<
starve: $(B)/examples/g2p $(B)/tests/nets/starve_malloc.so
	@B=$(B) V=$(V) LONG='$(LONG)' bash tests/nets/starve.sh
# Hours: everything, in every variant. tests/README.md says what .ci/run has of it.
nightly: $(B)/examples/g2p
	@$(MAKE) --no-print-directory test
	@for v in double asan dasan tsan; do $(MAKE) --no-print-directory V=$$v WEFT_LIMIT=1800 test || exit 1; done
	@WHOLE=1 WEFT_LIMIT=1800 $(MAKE) --no-print-directory V=asan test-cuda
	@$(MAKE) --no-print-directory CC=clang NVCC=none BUILD=$(BUILD)/clang everything
	@$(MAKE) --no-print-directory planted
	@BUILD=$(BUILD) bash tests/nets/planted_cuda.sh
	@$(MAKE) --no-print-directory hunt PROGRAMS=10000 SEED=$(or $(SEED),1)
	@$(MAKE) --no-print-directory kill KILLS=200
	@$(MAKE) --no-print-directory starve LONG=1
	@$(MAKE) --no-print-directory test-parallel MOMENTS=20
	@$(MAKE) --no-print-directory gpu-model GPU_MODEL_FLAGS=--check
	@$(if $(filter none,$(NVCC)),,$(MAKE) --no-print-directory V=double CUDA_ARCHS=90 $(BUILD)/double/libweft_cuda.so)
	@$(if $(filter none,$(NVCC)),,B=$(B) bash tests/nets/registers.sh)
	@$(MAKE) --no-print-directory planted-ptx WHOLE=1
	@$(if $(filter none,$(NVCC)),,B=$(B) bash tests/ptx/sass.sh)
	@TIDY_ALL=1 $(MAKE) --no-print-directory lint
	@MAKE='$(MAKE)' CC='$(CC)' bash tests/nets/adding.sh
	@$(MAKE) --no-print-directory fuzz SECONDS=3600

# Damaged files for every reader: make fuzz SECONDS=60 SEED=1, see tests/nets/fuzz.sh. what reads files is compiled for it, the rest is the archive's.
SECONDS    ?= 60
F          := $(BUILD)/fuzz
FUZZ_CC    ?= clang
FUZZ_FLAGS  = $(BASE) $(HDF5) -g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -MMD -MP
READER_SRC := $(filter io/% plan/% rnn/forecast/series/%,$(SRC))
FUZZ_SRC   := $(READER_SRC) $(wildcard tests/fuzz/*.c)
FUZZ_WITH  := $(patsubst %.c,$(F)/%.o,$(READER_SRC) $(filter-out tests/fuzz/fuzz_% tests/fuzz/seeds.c,$(wildcard tests/fuzz/*.c)))
FUZZERS    := $(patsubst tests/fuzz/%.c,$(F)/%,$(wildcard tests/fuzz/fuzz_*.c))
$(F)/%.o: %.c $(B)/flags | $(BUILD)/.needs-fuzz
	@mkdir -p $(@D)
	$(call say,FUZZ)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -c -o $@ $<
$(FUZZERS): $(F)/%: $(F)/tests/fuzz/%.o $(FUZZ_WITH) $(BUILD)/libweft.a
	$(call say,LINK)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free -o $@ $^ $(LIBS)
$(F)/seeds: $(B)/tests/fuzz/seeds.o $(B)/tests/fuzz/model.o $(B)/libweft.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LIBS)
fuzz: $(FUZZERS) $(F)/seeds
	@F=$(F) bash tests/nets/fuzz.sh $(SECONDS) $(READERS)

lint: $(B)/libweft.so | $(BUILD)/.needs-lint
	@B=$(B) CC='$(CC)' WEFT_NO_TIDY='$(WEFT_NO_TIDY)' bash tests/lint.sh

# The library looks for libweft_cuda.so beside itself. Programs of this tree have the archive in them and lie elsewhere: they are told.
bench demo forecast slow_pack lab: export WEFT_BACKEND_PATH ?= $(abspath $(B))
# What ranks cost and bring, by Open MPI: see bench/parallel.sh.
$(B)/tests/parallel/exchange: tests/parallel/exchange.c $(B)/libweft.a
	@mkdir -p $(@D)
	$(call say,MPI )
	$(Q)OMPI_CC='$(CC)' mpicc.openmpi $(BASE) $(CFLAGS) $(VFLAGS) -o $@ $^ $(LIBS)
$(B)/bench/parallel_model $(B)/bench/parallel_reads: $(B)/bench/parallel_%: tests/parallel/parallel_%.c $(B)/libweft.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(VFLAGS) -o $@ $< $(B)/libweft.a $(LIBS)
bench-parallel: $(B)/examples/g2p $(B)/bench/parallel_model $(B)/bench/parallel_reads $(B)/tests/parallel/exchange $(B)/tests/parallel/slow.so $(TRANSPORTS)
	@sh tests/deps.sh parallel && sh tests/deps.sh dictionary $(BUILD)/data/cmudict.out
	@B=$(B) DICT=$(BUILD)/data/cmudict.out ROUNDS=$(ROUNDS) bash bench/parallel.sh && $(B)/bench/parallel_model && $(B)/bench/parallel_reads $(B)/bench/reads.h5 8
# One token a call, beside onnxruntime where PyPI has it: see bench/stream.sh.
$(B)/bench/stream/stream: $(patsubst bench/stream/%.c,$(B)/bench/stream/%.o,$(wildcard bench/stream/*.c)) $(patsubst %.c,$(B)/%.o,$(filter-out bench/weft_bench.c,$(wildcard bench/*.c))) $(B)/libweft.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
bench-stream: $(B)/bench/stream/stream
	@B=$(B) bash bench/stream.sh $(STREAM_FLAGS)
# Is the instruction set that is chosen the fastest one? See bench/tiers.py.
tiers: $(BENCH) $(B)/bench/stream/stream
	@python3 bench/tiers.py --build $(B) $(TIERS_FLAGS)
# How a step's cost grows with length, sequences, units, vocabulary, features, threads: docs/growth.md.
$(B)/bench/growth/one_step: $(B)/bench/growth/one_step.o $(B)/libweft.so
	$(call say,LINK)
	$(Q)$(CC) $(VFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -L$(B) -lweft -Wl,-rpath,'$$ORIGIN/../..' $(LIBS)
bench-growth: $(BENCH) $(B)/bench/growth/one_step
	python3 bench/growth.py $(B) $(GROWTH)
# Launches of a training step on a GPU, counted by the emulation at true shapes, beside their limits.
launches: $(BENCH) $(EMULATED)
	@bench/launches.py --bench $(B)/bench/weft_bench --emulation $(abspath $(B))/emu $(LAUNCHES_FLAGS)
# How long a training step should take on three GPUs, which nobody has timed: PREDICTED, see bench/gpu_model.py.
gpu-model: $(BENCH) $(EMULATED)
	@bench/gpu_model.py --bench $(B)/bench/weft_bench --emulation $(abspath $(B))/emu $(GPU_MODEL_FLAGS)
bench: $(BENCH)
	bench/compare --bench $< $(BENCH_FLAGS)

# An encoder-decoder learns to pronounce English: see examples/g2p.c.
demo: $(B)/examples/g2p
	@sh tests/deps.sh dictionary $(BUILD)/data/cmudict.out
	rm -rf $(B)/demo
	@mkdir -p $(B)/demo
	$< --data $(BUILD)/data/cmudict.out --out $(B)/demo/g2p.h5 --log $(B)/demo/log.jsonl --pictures $(B)/demo $(DEMO_FLAGS)

# A magnet's field from its current, by a model of the six: see examples/forecast.c. FORECAST_FLAGS="--model tft", or --resume.
forecast: $(B)/examples/forecast
	@mkdir -p $(B)/forecast
	$< --out $(B)/forecast/forecast.h5 --log $(B)/forecast/log.jsonl --pictures $(B)/forecast $(FORECAST_FLAGS)

# One language model of fortunes, batches by five plans: seconds to the same bits a byte, and all else that `weft lab` measures, on one page.
# QUICK=1: seconds instead of an hour. lab-check looks at the page in Chromium, if there is one.
LAB_FLAGS = $(if $(QUICK),--quick --seconds 240,--limit 99999 --hidden 256 --update 2048 --epochs 8 --lr .006 --seeds 1 --rounds 1 --seconds 14400 --target 2.25) \
    --threads $(or $(THREADS),2)
LAB_PLANNERS = --planner random:count=32 --planner pool:count=32,shuffle=yes --planner best_fit_decreasing:capacity=2435,rows=1 \
    --planner streams:slots=32,window=64,shuffle=yes --padded random:count=32
lab: $(COMMAND)
	@sh tests/deps.sh lab
	@mkdir -p $(B)/lab
	$< lab --corpus fortunes $(LAB_PLANNERS) $(LAB_FLAGS) --out $(B)/lab/fortunes.html
lab-check: $(COMMAND)
	@B=$(B) bash tests/lab_check.sh $(wildcard $(B)/lab/*.html)

# The documents, the lessons and a reference out of the headers as pages for a browser, see docs/site/README.md; site-check looks at them in
# Chromium, if there is one.
site: | $(BUILD)/.needs-site
	@sh docs/site/python.sh docs/site/make.py $(BUILD)/site $(wildcard $(BUILD)/lab/fortunes.html)
	@sh docs/site/python.sh docs/site/check.py $(BUILD)/site
site-check: site
	@B=$(BUILD) bash docs/site/check_in_chromium.sh

# Lessons, on the library of doubles: N's file is compiled, shown, checked and drawn; its copy for a student; all solutions, starts and
# wrong answers; the answers of a class; a copy for students, without solutions. See lessons/README.md.
LESSON_V := $(if $(filter asan dasan,$(V)),dasan,double)
LESSONS   = B='$(abspath $(BUILD))/$(LESSON_V)' V=$(LESSON_V) CC='$(CC)' bash lessons/lesson.sh
lesson lessons grade: lesson-library
ifeq ($(V),$(LESSON_V))
lesson-library: $(B)/libweft.a
else
lesson-library: ; @+$(MAKE) --no-print-directory V=$(LESSON_V) $(BUILD)/$(LESSON_V)/libweft.a
endif
lesson: ; @OUT=$(BUILD)/lessons $(LESSONS) run $(N) $(FILE)
lesson-start: ; @$(LESSONS) start $(N) $(DIR)
lessons: ; @$(LESSONS) all
grade: ; @$(LESSONS) grade $(DIR)
.PHONY: lessons-package
lessons-package: ; @$(LESSONS) package $(or $(DIR),$(BUILD)/lessons-package)

# Is packing slow? Padded and packed, beside PyTorch if there is one: see examples/slow_pack.c.
slow_pack: $(B)/examples/slow_pack
	@mkdir -p $(B)/slow_pack
	$< --out $(B)/slow_pack $(SLOW_PACK_FLAGS)

# Headers in PREFIX/include/weft, and PREFIX/include/weft.h, which includes them: no folder of ours is on a program's include path.
DOCUMENTS := README.md LICENSE $(wildcard docs/*.md docs/*.svg docs/*.png docs/*.pl docs/design/*.md examples/*.[ch] examples/*.cpp examples/common/*.[ch] examples/common/*.sh examples/python/*.py)
INSTALL = env B='$(abspath $(B))' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DOCDIR='$(DOCDIR)' DESTDIR='$(DESTDIR)' VERSION='$(VERSION)' SOVERSION='$(SOVERSION)' \
    F64='$(F64)' DEFINES='$(filter -D%,$(VFLAGS))' LIBS='$(LIBS)' HEADERS='$(HEADERS)' DOCUMENTS='$(DOCUMENTS)' CC='$(CC)' V='$(LESSON_V)' bash core/install/install.sh
install: $(B)/libweft.a $(B)/libweft.so $(COMMAND) ; @$(INSTALL) install
uninstall: ; @$(INSTALL) uninstall
installcheck:
	@MAKE='$(MAKE)' CC='$(CC)' V=$(V) B=$(B) sh tests/installcheck.sh
clean:
	rm -rf $(BUILD)

# Paths of a variant as targets without V=: one make for each variant that was named.
ifeq ($(V),)
define delegate
goals_$(1) := $$(filter $(BUILD)/$(1)/%,$$(MAKECMDGOALS))
ifneq ($$(goals_$(1)),)
.PHONY: delegate_$(1)
$$(goals_$(1)): delegate_$(1) ; @:
delegate_$(1): ; @+$$(MAKE) --no-print-directory V=$(1) $$(goals_$(1))
endif
endef
$(foreach v,$(VARIANTS),$(eval $(call delegate,$(v))))
endif

.PHONY: all everything objects check test test-cuda test-ptx planted-ptx test-parallel soak planted hunt fuzz kill starve nightly lint bench bench-parallel bench-stream bench-growth launches gpu-model demo forecast slow_pack lab lab-check site site-check lesson lesson-library lesson-start lessons grade install uninstall installcheck clean tiers
.SECONDARY:
.DELETE_ON_ERROR:
-include $(CUDA_OBJ:.o=.d) $(EMU_OBJ:.o=.d) $(B)/emu/emu_test.d $(B)/emu/ptx/ptx_test.d $(B)/emu/nccl.d
-include $(FUZZ_SRC:%.c=$(F)/%.d)
-include $(patsubst %.c,$(B)/%.d,$(SRC) $(wildcard examples/*.c examples/common/*.c tools/*.c tools/*/*.c bench/*.c bench/*/*.c tests/*.c tests/*/*.c))
