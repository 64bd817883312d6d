# bench.mk - measurements.
#: Measure
#:   bench                      compares with PyTorch on the same work, if installed; BENCH_FLAGS=
#:   bench-growth               measures how the cost of a step grows with each size (docs/growth.md)
#:   bench-parallel             measures the cost and the gain of ranks, with Open MPI
#:   g2p-best                   two larger networks pronounce together, twenty minutes; DICT= SEED=
#:   classify                   compares networks and DTW on time series; CLASSIFY_FLAGS= AEON=folder
#:   tagger                     compares softmax, CRF and crfsuite on the stress of words; TAGGER_FLAGS= CRFSUITE=folder
#:   bench-stream               measures calls with one token, and onnxruntime from PyPI
#:   tiers                      checks that the default instruction set is the fastest
#:   launches                   counts the kernel launches of a GPU step by emulation, and checks their limits
BENCH := $(if $(wildcard bench/weft_bench.c),$(B)/bench/weft_bench)
$(BENCH): $(patsubst %.c,$(B)/%.o,$(wildcard bench/*.c)) $(B)/libweft.a
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS)
bench: $(BENCH)
	bench/compare --bench $< $(BENCH_FLAGS)

$(B)/bench/growth/one_step: $(B)/bench/growth/one_step.o $(B)/libweft.so
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $< -L$(B) -lweft -Wl,-rpath,'$$ORIGIN/../..' $(LIBS)
bench-growth: $(BENCH) $(B)/bench/growth/one_step
	python3 bench/growth.py $(B) $(GROWTH)

$(B)/tests/parallel/exchange: tests/parallel/exchange.c $(B)/libweft.a
	@mkdir -p $(@D)
	$(call say,MPI )
	$(Q)OMPI_CC='$(CC)' mpicc.openmpi $(BASE) $(CFLAGS) $(VFLAGS) -o $@ $^ $(LIBS)
bench-parallel: $(B)/examples/g2p $(B)/tests/parallel/exchange \
                $(B)/tests/parallel/slow.so $(TRANSPORTS) $(DICT)
	@sh tests/deps.sh parallel
	@B=$(B) DICT=$(DICT) ROUNDS=$(ROUNDS) bash bench/parallel.sh

STREAM_SRC := $(wildcard bench/stream/*.c) $(filter-out bench/weft_bench.c,$(wildcard bench/*.c))
$(B)/bench/stream/stream: $(STREAM_SRC:%.c=$(B)/%.o) $(B)/libweft.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(LINK) -o $@ $^ $(LIBS)
bench-stream: $(B)/bench/stream/stream
	@B=$(B) bash bench/stream.sh $(STREAM_FLAGS)
tiers: $(BENCH) $(B)/bench/stream/stream
	@python3 bench/tiers.py --build $(B) $(TIERS_FLAGS)

launches: $(BENCH) $(EMULATED)
	@bench/launches.py --bench $(BENCH) --emulation $(abspath $(B))/emu $(LAUNCHES_FLAGS)
AEON ?= $(BUILD)/data/aeon
$(AEON)/data: ; @sh tests/deps.sh aeon $(AEON)
classify: $(B)/examples/classify $(AEON)/data
	$< --published $(AEON)/accuracy $(CLASSIFY_FLAGS) $(AEON)/data JapaneseVowels PickupGestureWiimoteZ ArrowHead \
	    GunPoint ItalyPowerDemand OSULeaf ACSF1
SEED ?= 1
TRAIN_BEST = $< --data $(DICT) --beam 1 --lr 0.002 --seed $(SEED)
g2p-best: $(B)/examples/g2p $(DICT)
	rm -rf $(B)/best
	@mkdir -p $(B)/best
	$(TRAIN_BEST) --out $(B)/best/g2p.h5 --hidden 192 --embed 48 --epochs 10 --dropout 0.06
	$(TRAIN_BEST) --out $(B)/best/ctc.h5 --ctc 1 --hidden 160 --layers 3 --epochs 12 --dropout 0.1
	cd $(B)/best && $(abspath $<) --data $(abspath $(DICT)) --test g2p.h5 --with ctc.h5
CRFSUITE ?= $(BUILD)/crfsuite
tagger: $(B)/examples/tagger $(DICT)
	@sh tests/deps.sh crfsuite $(CRFSUITE)
	@mkdir -p $(B)/tagger
	@$< --data $(DICT) $(TAGGER_FLAGS) --write $(B)/tagger/words
	$< --data $(DICT) $(TAGGER_FLAGS) --test
	$(CRFSUITE)/bin/python bench/peers/tagger_crfsuite.py --test $(B)/tagger/words
.PHONY: g2p-best tagger classify bench bench-growth bench-parallel bench-stream tiers launches
-include $(patsubst %.c,$(B)/%.d,$(wildcard bench/*.c bench/*/*.c))
