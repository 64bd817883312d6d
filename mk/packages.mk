# packages.mk - source tarball, packages, binary interface, other compilers; see tests/README.md.
#: Packages
#:   dist                       writes build/dist/weft-VERSION.tar.gz from the last commit; it builds without git
#:   deb                        builds Debian packages twice, compares and uses them: build/deb/*.deb
#:   abi                        compares the binary interface with the last release
#:   distros                    builds with gcc 11 to 14 and clang 14 to 19 in Debian 12 and 13; COMPILERS= DISTROS=
#:   wheel                      builds the Python wheel twice, compares, installs and runs it: build/wheel/*.whl
#:   weft.c                     writes build/amalgamation/weft.c and weft.h: the library of IO=none as two files
#:   amalgamation               writes them, compiles them with gcc, clang and zig, and tests them
PACKAGES = env MAKE='$(MAKE)' CC='$(CC)' BUILD='$(BUILD)' VERSION='$(VERSION)' SOVERSION='$(SOVERSION)' \
    bash tests/packages
dist: $(B)/examples/first
	@$(PACKAGES)/dist.sh
deb: $(B)/examples/first $(COMMAND)
	@$(PACKAGES)/deb.sh
abi: $(B)/libweft.so
	@$(PACKAGES)/abi.sh
wheel: $(B)/libweft.a $(B)/weft.map
	@B='$(B)' V='$(V)' LIBS='$(LIBS)' $(PACKAGES)/wheel.sh
distros: ; @$(PACKAGES)/distros.sh
ifeq ($(IO),)
weft.c amalgamation: ; @$(MAKE) --no-print-directory IO=none V= NVCC=none MPI=none $@
else
weft.c:
	@mkdir -p $(BUILD)/amalgamation
	@python3 mk/amalgamate.py $(BUILD)/amalgamation $(VERSION) \
	    $(filter -D%,$(VFLAGS)) $(filter weft%,$(HEADERS)) -- $(SRC)
amalgamation: weft.c $(B)/libweft.a $(B)/tests/golden $(B)/tests/hunt/hunt $(B)/tests/packages/bits.o
	+@B='$(B)' $(PACKAGES)/amalgamation.sh
endif
.PHONY: dist deb abi distros wheel weft.c amalgamation
