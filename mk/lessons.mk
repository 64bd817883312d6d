# lessons.mk - the course; it uses the double library (lessons/README.md).
#: Lessons
#:   lesson N=3 FILE=my.c       compiles and checks an answer to a lesson, and draws its picture
#:   lesson-start N=3 DIR=dir   copies a lesson's starting files for a student
#:   lessons                    checks all solutions, starting files and wrong answers
#:   grade DIR=dir              grades the answers of a class
#:   lessons-package DIR=dir    copies the lessons for students, without solutions
#:   solutions-package DIR=dir  copies the solutions, checks and wrong answers, for teachers
#:   notebooks                  writes a Jupyter notebook for each lesson, build/notebooks
#:   slides                     writes build/slides/NN.html for each lesson, and checks in Chromium that all fits
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
lessons-package: ; @$(LESSONS) package $(or $(DIR),$(BUILD)/lessons-package)
slides: | $(BUILD)/.needs-site
	@sh docs/site/python.sh lessons/slides.py $(BUILD)/slides \
	    $$(command -v chromium chromium-browser google-chrome chrome-headless-shell | head -n 1)
solutions-package: ; @$(LESSONS) solutions $(or $(DIR),$(BUILD)/solutions-package)
notebooks: ; @python3 -B lessons/notebooks.py $(BUILD)/notebooks
.PHONY: solutions-package notebooks slides lesson lesson-start lesson-library lessons grade lessons-package
