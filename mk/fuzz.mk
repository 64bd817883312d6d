# fuzz.mk - runs every reader on damaged files (tests/nets/fuzz.sh). Readers are compiled for libFuzzer; the other code
# comes from the archive.
#:   fuzz                       runs every reader on damaged files; SECONDS=60 SEED=1 READERS="csv frame"
SECONDS    ?= 60
F          := $(BUILD)/fuzz
FUZZ_CC    ?= clang
FUZZ_SAFE   = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FUZZ_FLAGS  = $(BASE) $(HDF5) -g -O1 $(FUZZ_SAFE) -MMD -MP
READER_SRC := $(filter-out plan/run/plan_run.c,$(filter io/% plan/% rnn/forecast/series/%,$(SRC)))
FUZZ_SRC   := $(READER_SRC) $(wildcard tests/fuzz/*.c)
FUZZ_PARTS := $(READER_SRC) $(filter-out tests/fuzz/fuzz_% tests/fuzz/seeds.c,$(wildcard tests/fuzz/*.c))
FUZZERS    := $(patsubst tests/fuzz/%.c,$(F)/%,$(wildcard tests/fuzz/fuzz_*.c))
WRAPPED    := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
$(F)/%.o: %.c $(B)/flags | $(BUILD)/.needs-fuzz
	@mkdir -p $(@D)
	$(call say,FUZZ)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -c -o $@ $<
$(FUZZERS): $(F)/%: $(F)/tests/fuzz/%.o $(FUZZ_PARTS:%.c=$(F)/%.o) $(BUILD)/libweft.a
	$(call say,LINK)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined $(WRAPPED) -o $@ $^ $(LIBS)
$(F)/seeds: $(B)/tests/fuzz/seeds.o $(B)/tests/fuzz/model.o $(B)/libweft.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LIBS)
fuzz: $(FUZZERS) $(F)/seeds
	@F=$(F) bash tests/nets/fuzz.sh $(SECONDS) $(READERS)
.PHONY: fuzz
-include $(FUZZ_SRC:%.c=$(F)/%.d)
