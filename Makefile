# Makefile - builds weft. `make help` lists the targets; mk/*.mk define them by subject.
#
# Wildcards find all files. A new .c in a folder of the library is a new object, a new tests/*/test_*.c a new test, and
# a new examples/*.c with a main a new program. Files examples/X_*.c belong to examples/X.c.
$(if $(filter 3.% 4.0% 4.1%,$(MAKE_VERSION)),$(error weft needs GNU make 4.2; on macOS: brew install make, then gmake))
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

#: Variables
#:   V=double|asan|dasan|tsan   builds a variant in build/<variant>/
#:   BUILD=dir                  builds in another folder (build)
#:   CC=clang WERROR=1          compiles as CI does; VERBOSE=1 shows the commands
#:   NVCC=none                  builds no libweft_cuda.so; CUDA_ARCHS="80 90" builds it for these GPUs only
#:   MPI=none                   builds no transports for Open MPI and MPICH
#:   IO=none                    builds a library of libc and libm only, without HDF5, ONNX and the command: build/none
#:   PREFIX= LIBDIR= DOCDIR= DESTDIR=   where make install puts its files
V        ?=
BUILD    ?= build
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
DOCDIR   ?= $(PREFIX)/share/doc/weft
B        := $(BUILD)$(if $(V),/$(V))$(if $(IO),/none)
VARIANTS := double asan dasan tsan
$(if $(filter-out $(VARIANTS),$(V)),$(error V: found $(V); expected $(VARIANTS)))

VERSION    := $(subst $() ,.,$(shell sed -n 's/^.define WEFT_VERSION_[A-Z]* *//p' core/api_core.h))
# Each 0.x has its own binary interface.
SOVERSION  := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))
PKG_CONFIG ?= pkg-config
HDF5        = $(if $(IO),,$(shell $(PKG_CONFIG) --cflags hdf5 zlib))
LIBS        = $(if $(IO),,$(shell $(PKG_CONFIG) --libs hdf5 zlib)) -ldl -lm -lpthread
LIBS       += $(if $(filter riscv%,$(MACHINE)),-latomic)

# $(call found,PATTERN) lists the library's files, three folders deep.
FLOORS   := core plan autograd nn io rnn parallel
found     = $(wildcard $(foreach f,$(FLOORS),$f/$(1) $f/*/$(1) $f/*/*/$(1)))
# IO=none leaves out code for HDF5, zlib and files of other programs, and kernels for tests.
FOREIGN  := core/cpu/amx_emulated.c io/hdf5/% io/onnx/% io/data/hdf5% io/checkpoint/hdf5.c \
            rnn/forecast/series/frame_hdf5.c \
            $(patsubst %,io/weights/%.c,hdf5 keras keras_arrays numpy onnx pickle protobuf torch zip)
SRC      := $(filter-out parallel/mpi/% $(if $(IO),$(FOREIGN)),$(call found,*.c))
HEADERS  := $(filter-out $(if $(IO),weft_onnx.h io/onnx/%),$(wildcard weft*.h) $(call found,api_*.h))
OBJ      := $(SRC:%.c=$(B)/%.o)
program   = $(patsubst %.c,$(B)/%,$(shell grep -lsw 'int main' $(wildcard $(1)/*.c)))
EXAMPLES := $(call program,examples)
COMMAND  := $(if $(IO),,$(B)/weft)

Q := $(if $(VERBOSE),,@)
say = $(if $(VERBOSE)$(findstring s,$(firstword -$(MAKEFLAGS))),@:,@echo '  $(1)  $@')
comma := ,
space := $() $()

.DEFAULT_GOAL := all
include mk/compile.mk mk/cuda.mk mk/mpi.mk

#: Build
#:   all                        the library, the command weft, the examples and, with nvcc, libweft_cuda.so
#:   everything                 the same, with the tests and the benchmark
#:   install, uninstall         copies files to PREFIX, and removes them
#:   clean                      removes build/
#:   deps, deps-test            installs the Debian packages for a build, and for the tests
all: $(B)/libweft.a $(LIBWEFT) $(COMMAND) $(EXAMPLES) $(CUDA) $(TRANSPORTS)

$(B)/libweft.a: $(OBJ)
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcs $@ $^
$(B)/weft.map: core/install/weft.map
	@mkdir -p $(@D)
	@sed $(EXPORTS) $< >$@
$(LIBWEFT): $(OBJ) $(B)/weft.map
	$(call say,LINK)
	$(Q)$(LINK) $(SO_FLAGS) -o $@ $(OBJ) $(LIBS)
	@ln -sf $(@F) $(B)/$(SONAME)

# Programs link the archive, so they run from any folder.
.SECONDEXPANSION:
objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1).c $(1)_*.c))
$(B)/examples/common.a: $(patsubst %.c,$(B)/%.o,$(wildcard examples/common/*.c))
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcs $@ $^
$(EXAMPLES): $(B)/%: $$(call objects,$$*) $(B)/examples/common.a $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS)
$(B)/weft: $(patsubst %.c,$(B)/%.o,$(wildcard tools/*.c tools/*/*.c)) $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(LINK) -rdynamic -o $@ $^ $(JANSSON) $(LIBS)

#: Run
#:   demo                       an encoder-decoder learns to pronounce English (docs/g2p.md); DEMO_FLAGS= DICT=file
#:   forecast                   a model predicts a magnet's field from its current; FORECAST_FLAGS="--model tft"
#:   slow_pack                  padded and packed training side by side; SLOW_PACK_FLAGS=
# The library searches for libweft_cuda.so in its own folder. These programs contain the archive, so they need the path.
bench demo forecast slow_pack lab: export WEFT_BACKEND_PATH ?= $(abspath $(B))
DICT ?= $(BUILD)/data/cmudict.out
$(BUILD)/data/cmudict.out: ; @sh tests/deps.sh dictionary $@
demo: $(B)/examples/g2p $(DICT)
	rm -rf $(B)/demo
	@mkdir -p $(B)/demo
	$< --data $(DICT) --out $(B)/demo/g2p.h5 \
	    --log $(B)/demo/log.jsonl --pictures $(B)/demo $(DEMO_FLAGS)
forecast: $(B)/examples/forecast
	@mkdir -p $(B)/forecast
	$< --out $(B)/forecast/forecast.h5 --log $(B)/forecast/log.jsonl --pictures $(B)/forecast $(FORECAST_FLAGS)
slow_pack: $(B)/bench/weft_bench
	@mkdir -p $(B)/slow_pack
	bench/compare --bench $< --case slow_pack --out $(B)/slow_pack/slow_pack.jsonl $(SLOW_PACK_FLAGS)

include mk/bench.mk mk/tests.mk mk/fuzz.mk mk/lab.mk mk/lessons.mk mk/packages.mk
everything: all $(TESTS) $(TOOLS) $(BENCH)

# Headers go to PREFIX/include/weft. PREFIX/include/weft*.h include them, so a program needs no folder of weft in its
# include path.
DOCUMENTS := README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE \
             $(wildcard docs/*.md docs/*.svg docs/*.png docs/design/*.md \
             examples/*.[ch] examples/*.cpp examples/common/*.[ch] examples/common/*.sh \
             examples/python/*.py examples/python/*.md examples/python/*/*.ipynb)
INSTALL = env B='$(abspath $(B))' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DOCDIR='$(DOCDIR)' DESTDIR='$(DESTDIR)' \
    VERSION='$(VERSION)' SOVERSION='$(SOVERSION)' F64='$(F64)' DEFINES='$(filter -D%,$(VFLAGS))' LIBS='$(LIBS)' \
    HEADERS='$(HEADERS)' DOCUMENTS='$(DOCUMENTS)' CC='$(CC)' V='$(LESSON_V)' \
    bash core/install/install.sh
install: $(B)/libweft.a $(B)/libweft.so $(COMMAND) ; @$(INSTALL) install
uninstall: ; @$(INSTALL) uninstall
clean:
	rm -rf $(BUILD)
deps: $(BUILD)/.needs-build
deps-test: $(BUILD)/.needs-test
help: ; @sed -n 's/^#: \{0,1\}//p' $(MAKEFILE_LIST)

# The path of a file in a variant is a target without V=; it starts one make for each variant.
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

.PHONY: all everything objects demo forecast slow_pack install uninstall clean deps deps-test help
.PRECIOUS: $(B)/%.o
.DELETE_ON_ERROR:
-include $(patsubst %.c,$(B)/%.d,$(SRC) $(wildcard examples/*.c examples/common/*.c tools/*.c tools/*/*.c))
