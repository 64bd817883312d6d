# packages.mk - source tarball, packages, binary interface, other compilers; see tests/README.md.
#: Packages
#:   dist                       writes build/dist/weft-VERSION.tar.gz from the last commit; it builds without git
#:   abi                        compares the binary interface with the last release
PACKAGES = env MAKE='$(MAKE)' CC='$(CC)' BUILD='$(BUILD)' VERSION='$(VERSION)' SOVERSION='$(SOVERSION)' \
    bash tests/packages
dist: $(B)/examples/first
	@$(PACKAGES)/dist.sh
abi: $(B)/libweft.so
	@$(PACKAGES)/abi.sh
.PHONY: dist abi
