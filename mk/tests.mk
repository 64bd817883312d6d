# tests.mk - tests and long checks. tests/README.md describes what each proves and how often it runs.
TEST_SRC := $(wildcard tests/*/test_*.c)
ROOMS    := $(sort $(foreach t,$(TEST_SRC),$(word 2,$(subst /, ,$t))))
TESTS    := $(ROOMS:%=$(B)/tests/test_%)
TOOLS    := $(addprefix $(B)/tests/,golden tsan_main cross/files hunt/hunt interchange/export \
              parallel/ranks parallel/train parallel/carry parallel/launched)
# Criterion, or an object that replaces it (tests/cross/)
CRITERION ?= -lcriterion
PLANTED  := $(patsubst %.c,$(B)/%,$(wildcard tests/planted/*.c))

# ---- programs ----
$(patsubst %.c,$(B)/%.o,$(wildcard tests/*.c tests/*/*.c)): | $(BUILD)/.needs-test
# One test program for each folder. It links a shared library with visible internal functions.
$(B)/tests/libweft_inside.so: $(OBJ)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LINK) -shared -o $@ $^ $(LIBS)
$(foreach t,$(TEST_SRC),$(eval $(B)/tests/test_$(word 2,$(subst /, ,$t)): $(B)/$(t:.c=.o)))
# Callers of all public functions, generated from the headers: see tests/api/refusals.py.
$(B)/tests/api/test_refused.o: CPPFLAGS += -I$(B)
$(B)/tests/api/test_refused.o: $(B)/tests/api/refusals.h
$(B)/tests/api/refusals.h: tests/api/refusals.py $(HEADERS) $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(Q)CC='$(CC)' python3 $< $(filter -D%,$(VFLAGS)) >$@
$(TESTS): $(B)/tests/failing_malloc.o $(B)/tests/libweft_inside.so $(filter %.o,$(CRITERION))
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) -L$(@D) -lweft_inside -Wl,-rpath,'$$ORIGIN' $(filter -l%,$(CRITERION)) \
	    $(JANSSON) $(LIBS)
$(PLANTED): $(B)/%: $(B)/%.o $(B)/tests/failing_malloc.o $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(CRITERION) $(JANSSON) $(LIBS)
$(B)/tests/golden: $(patsubst %.c,$(B)/%.o,$(wildcard tests/golden_run/*.c))
$(B)/tests/tsan_main: $(B)/tests/tsan_main.o
$(B)/tests/cross/files $(B)/tests/parallel/ranks $(B)/tests/parallel/launched: %: %.o
$(B)/tests/interchange/export: %: %.o
$(B)/tests/parallel/train: $(B)/tests/parallel/train.o $(B)/tests/parallel/pairs.so
$(B)/tests/parallel/carry: $(B)/tests/parallel/carry.o $(B)/tests/parallel/pairs.so
$(B)/tests/hunt/hunt: $(patsubst %.c,$(B)/%.o,$(wildcard tests/hunt/*.c))
$(TOOLS): $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(JANSSON) $(LIBS)
SHARED = $(CC) $(BASE) $(CFLAGS) $(VFLAGS) -fPIC -shared
$(B)/tests/parallel/pairs.so $(B)/tests/parallel/slow.so: $(B)/tests/parallel/%.so: tests/parallel/%.c \
                                     parallel/transport.h tests/parallel/clock.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(SHARED) -fvisibility=hidden -o $@ $<
$(B)/tests/nets/starve_malloc.so: tests/nets/starve_malloc.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(BASE) $(CFLAGS) -fPIC -shared -o $@ $<

#: Check
#:   check                      fast checks: Criterion's tests, code in documents, lint without clang-tidy
#:   test                       all tests; UNITS="test_ops golden io": only these files, programs and folders, on a CPU
#:   lint                       checks the rules of style and structure
#:   format                     formats the lines that differ from the last commit, with clang-format
#:   nightly                    runs everything in every variant, for hours
RUN_TESTS  = B=$(B) V=$(V) CC='$(CC)' bash tests/run.sh $(filter $(B)/tests/% $(B)/emu/%_test,$^)
UNITS     ?=
UNIT_FILES = $(foreach u,$(UNITS),$(wildcard tests/*/$(filter test_%,$u).c tests/$u/test_*.c))
UNIT_ROOMS = $(sort $(foreach f,$(UNIT_FILES),$(B)/tests/test_$(word 2,$(subst /, ,$f))))
SOME_TESTS = $(UNIT_ROOMS) $(filter $(UNITS:%=$(B)/tests/%),$(TOOLS))
BENCHES    = $(BENCH) $(B)/bench/stream/stream $(B)/bench/growth/one_step
PLAIN      = $(TESTS) $(TOOLS) $(COMMAND) $(EXAMPLES) $(BENCHES) $(B)/libweft.a $(B)/libweft.so $(TRANSPORTS)
ALL_TESTS  = $(if $(filter tsan,$(V)),$(TOOLS),$(PLAIN)) $(EMULATED) $(B)/emu/emu_test \
             $(if $(filter-out asan,$(V)),,$(B)/emu/ptx_test) $(if $(V),,lesson-library)
test: $(if $(UNITS),$(SOME_TESTS),$(ALL_TESTS))
	@UNITS='$(UNITS)' $(if $(UNITS),,CUDA=$(abspath $(B)/emu)) $(RUN_TESTS)
check: $(TESTS) $(B)/libweft.a $(B)/libweft.so $(EXAMPLES) $(COMMAND)
	@FAST=1 $(RUN_TESTS)
	@$(MAKE) --no-print-directory WEFT_NO_TIDY=1 lint
format: ; @git clang-format --force --quiet --extensions c,h,cu,cuh
lint: $(B)/libweft.so | $(BUILD)/.needs-lint
	@B=$(B) CC='$(CC)' WEFT_NO_TIDY='$(WEFT_NO_TIDY)' bash tests/lint.sh

#:   test-cuda                  runs the GPU's tests by emulation; GPU=1: on the GPU of this machine
#:   test-ptx                   runs the PTX of libweft_cuda.so in an interpreter; WHOLE=1: all tests of a GPU
#:   test-parallel              tests many ranks with Open MPI and MPICH; MOMENTS=3: moments at which faults occur
#:   test-interchange           compares with PyTorch, Keras and onnxruntime, in a venv outside the tree
#:   installcheck               installs into a folder and builds programs with it
test-cuda: $(if $(GPU),$(B)/libweft_cuda.so,$(EMULATED)) $(TESTS) $(TOOLS) $(B)/examples/g2p
	@CUDA_ONLY=1 GPU=$(GPU) CUDA=$(abspath $(dir $<)) $(RUN_TESTS)
RECORD_PTX = B=$(B) WHOLE=$(WHOLE) bash tests/ptx/test.sh && bash tests/ptx/state.sh >tests/ptx/recorded
test-ptx: $(EMULATED) $(if $(filter none,$(NVCC)),,$(B)/libweft_cuda.so) $(TESTS) $(TOOLS)
	@$(if $(filter none,$(NVCC)),echo "skipped: no nvcc",$(RECORD_PTX))
planted-ptx: test-ptx
	@$(if $(filter none,$(NVCC)),,B=$(B) NVCC=$(NVCC) bash tests/ptx/planted.sh)
test-parallel: $(B)/examples/g2p $(TRANSPORTS) $(DICT)
	@B=$(B) DICT=$(DICT) MOMENTS=$(MOMENTS) bash tests/parallel/engines.sh
test-interchange: $(B)/tests/interchange/export $(COMMAND)
	@B=$(B) bash tests/interchange/run.sh
installcheck:
	@MAKE='$(MAKE)' CC='$(CC)' V=$(V) B=$(B) sh tests/installcheck.sh

#:   cross                      builds and tests for other CPUs, musl, macOS; MACHINES="quick", or names as in cross.sh
cross: $(B)/tests/cross/files
	@BUILD=$(BUILD) B=$(B) bash tests/cross.sh $(MACHINES)
#:   hunt                       runs random programs in twelve ways and compares bits; PROGRAMS=300 SEED=1
#:   kill                       kills runs and resumes them; KILLS=20 SEED=1
#:   starve                     makes every allocation fail once; LONG=1: more of them
#:   soak                       runs the tests with long loops
#:   planted                    proves that each check finds its planted bug
hunt: $(B)/tests/hunt/hunt
	@$< $(or $(PROGRAMS),300) $(or $(SEED),1)
kill: $(B)/examples/g2p
	@B=$(B) V=$(V) KILLS='$(KILLS)' SEED='$(SEED)' bash tests/nets/kill.sh
starve: $(B)/examples/g2p $(B)/tests/nets/starve_malloc.so
	@B=$(B) V=$(V) LONG='$(LONG)' bash tests/nets/starve.sh
soak: ; @WEFT_SOAK=1 $(MAKE) --no-print-directory test
planted: ; @MAKE='$(MAKE)' BUILD=$(BUILD) bash tests/nets/planted.sh

again = $(MAKE) --no-print-directory
nightly: $(B)/examples/g2p
	@$(again) test
	@for v in double asan dasan tsan; do $(again) V=$$v WEFT_LIMIT=1800 test || exit 1; done
	@WHOLE=1 WEFT_LIMIT=1800 $(again) V=asan test-cuda
	@$(again) CC=clang NVCC=none BUILD=$(BUILD)/clang everything
	@$(again) planted
	@BUILD=$(BUILD) bash tests/nets/planted_cuda.sh
	@$(again) hunt PROGRAMS=10000 SEED=$(or $(SEED),1)
	@$(again) cross
	@$(again) kill KILLS=200
	@$(again) starve LONG=1
	@$(again) test-parallel MOMENTS=20
	@$(if $(filter none,$(NVCC)),,$(again) V=double CUDA_ARCHS=90 $(BUILD)/double/libweft_cuda.so)
	@$(if $(filter none,$(NVCC)),,B=$(B) bash tests/nets/registers.sh)
	@$(again) planted-ptx WHOLE=1
	@$(if $(filter none,$(NVCC)),,B=$(B) bash tests/ptx/sass.sh)
	@$(again) deb
	@$(again) wheel
	@$(again) abi
	@$(again) distros
	@$(again) amalgamation
	@TIDY_ALL=1 $(again) lint
	@MAKE='$(MAKE)' CC='$(CC)' bash tests/nets/adding.sh
	@$(again) fuzz SECONDS=3600

.PHONY: test check lint format test-cuda test-ptx planted-ptx test-parallel test-interchange installcheck hunt kill \
        cross starve soak planted nightly
-include $(patsubst %.c,$(B)/%.d,$(wildcard tests/*.c tests/*/*.c))
