# lab.mk - the laboratory and the site.
#: Laboratory and site
#:   lab                        measures five plans with a language model and writes a page; QUICK=1: in minutes
#:   lab-check                  checks that page in Chromium, if installed
#:   site                       writes documents, lessons and the reference as HTML, build/site/index.html
#:   site-check                 checks the site in Chromium, if installed
LAB_LONG  = --limit 99999 --hidden 256 --update 2048 --epochs 8 --lr .006 --seeds 1 --rounds 1 \
            --seconds 14400 --target 2.25
LAB_FLAGS = $(if $(QUICK),--quick --seconds 240,$(LAB_LONG)) --threads $(or $(THREADS),2)
LAB_PLANS = --planner random:count=32 --planner pool:count=32,shuffle=yes \
            --planner best_fit_decreasing:capacity=2435,rows=1 \
            --planner streams:slots=32,window=64,shuffle=yes --padded random:count=32
lab: $(COMMAND)
	@sh tests/deps.sh lab
	@mkdir -p $(B)/lab
	$< lab --corpus fortunes $(LAB_PLANS) $(LAB_FLAGS) --out $(B)/lab/fortunes.html --report $(B)/lab/fortunes.md
lab-check: $(COMMAND)
	@B=$(B) bash tests/lab_check.sh $(wildcard $(B)/lab/*.html)
site: | $(BUILD)/.needs-site
	@sh docs/site/python.sh docs/site/make.py $(BUILD)/site $(wildcard $(BUILD)/lab/fortunes.html)
	@sh docs/site/python.sh docs/site/check.py $(BUILD)/site
site-check: site
	@B=$(BUILD) bash docs/site/check_in_chromium.sh
.PHONY: lab lab-check site site-check
