# packages.mk - source tarball, packages, binary interface, other compilers; see tests/README.md.
#: Packages
#:   dist                       writes build/dist/weft-VERSION.tar.gz from the last commit; it builds without git
#:   deb                        builds Debian packages twice, compares and uses them: build/deb/*.deb
#:   abi                        compares the binary interface with the last release
#:   distros                    builds with gcc 11 to 14 and clang 14 to 19 in Debian 12 and 13; COMPILERS= DISTROS=
#:   wheel                      builds the Python wheel twice, compares, installs and runs it: build/wheel/*.whl
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
.PHONY: dist deb abi distros wheel
