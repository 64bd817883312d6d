# packages.mk - the source tarball, packages, the binary interface, other compilers. tests/README.md describes the checks.
#: Packages
#:   dist                       writes build/dist/weft-VERSION.tar.gz from the last commit, and builds from it without git
PACKAGES = env MAKE='$(MAKE)' CC='$(CC)' BUILD='$(BUILD)' VERSION='$(VERSION)' SOVERSION='$(SOVERSION)' bash tests/packages
dist: $(B)/examples/first
	@$(PACKAGES)/dist.sh
.PHONY: dist
