# cuda.mk - builds the GPU's back end. It is a separate library, so weft also runs without CUDA.
NVCC       := $(or $(NVCC),$(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null),none)
CUDA_ARCHS ?= 80 90 100 120
CUDA_SRC   := $(wildcard cuda/*.cu)
CUDA_OBJ   := $(CUDA_SRC:%.cu=$(B)/%.o)
CUDA       := $(if $(filter none,$(NVCC))$(filter asan dasan tsan,$(V)),,$(if $(CUDA_SRC),$(B)/libweft_cuda.so))
CUDA_NAMES  = -DWEFT_CUDA_ARCHS=.$(subst $(space),.,$(strip $(CUDA_ARCHS))).

# The library has machine code for each of CUDA_ARCHS, and PTX for later GPUs: for 90 and 120 if listed, otherwise for
# the last one. nvcc 13 compresses it to the smallest size, which drivers of CUDA 12 may not read.
CUDA_PTX   := $(or $(filter 90 120,$(CUDA_ARCHS)),$(lastword $(CUDA_ARCHS)))
CUDA_13    := $(if $(CUDA_SRC),$(shell $(NVCC) --version 2>/dev/null | grep 'release 1[3-9]'))
CUDA_SMALL := $(if $(CUDA_SRC),$(if $(CUDA_13),--compress-mode=size,-Xfatbin -compress-all))
NVCC_FLAGS  = -std=c++17 -O3 -I. $(filter -D%,$(VFLAGS)) $(if $(WERROR),-Werror all-warnings) $(CUBLAS:%=-I%/include) \
              $(CUDA_NAMES) -MMD -MP $(CUDA_SMALL) \
              -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers

# Sources that test the architecture (cuda.h) are compiled for each. The others are compiled once for the oldest, and
# all machine code comes from that PTX. PTX for 90 would be the same; for 120 nvcc would unroll loops. weft uses no
# feature of sm_100 that sm_90 lacks. Sources without kernels need no machine code.
CUDA_EACH  := $(addprefix cuda/,attention.cu device.cu recur_block.cu recur_cluster.cu recur_group.cu)
CUDA_HOST   = $(if $(CUDA_SRC),$(shell grep -L __global__ $(CUDA_SRC)))
virtual     = $(patsubst 103,90,$(patsubst 100,90,$1))
oldest      = $(call virtual,$(firstword $(filter 8%,$(CUDA_ARCHS)) $(filter 9%,$(CUDA_ARCHS)) $(CUDA_ARCHS)))
gencode     = -gencode arch=compute_$1$(comma)code=$2_$3
NVCC_EACH   = $(foreach a,$(CUDA_ARCHS),$(call gencode,$(call virtual,$a),sm,$a)) \
              $(foreach a,$(call virtual,$(CUDA_PTX)),$(call gencode,$a,compute,$a))
NVCC_HOST   = -DWEFT_ONCE $(call gencode,$(oldest),compute,$(oldest))
NVCC_ONCE   = $(NVCC_HOST) $(foreach a,$(CUDA_ARCHS),$(call gencode,$(oldest),sm,$a))
# An element of a vector has the same bits at every position and alignment. So neither nvcc nor ptxas may fuse a
# multiplication with an addition at some positions only.
CUDA_UNFUSED := $(addprefix cuda/,nests.cu optimisers.cu pointwise.cu scan.cu)
nvcc_code   = $(if $(filter $1,$(CUDA_UNFUSED)),-fmad=false) \
              $(if $(filter $1,$(CUDA_EACH)),$(NVCC_EACH),$(if $(filter $1,$(CUDA_HOST)),$(NVCC_HOST),$(NVCC_ONCE)))
CUDA_STAMP := $(strip $(NVCC) $(filter-out -Werror all-warnings,$(NVCC_FLAGS)) $(NVCC_EACH) $(NVCC_ONCE) \
                      $(CUDA_EACH) $(CUDA_UNFUSED) --keep)
ifneq ($(CUDA),)
ifneq ($(CUDA_STAMP),$(file <$(B)/cuda_flags))
$(shell mkdir -p $(B))$(file >$(B)/cuda_flags,$(CUDA_STAMP))
endif
endif

# nvcc takes minutes, so the library is built first. The PTX of all code is kept in ptx/.
$(CUDA_OBJ): | $(B)/libweft.a $(B)/libweft.so
$(B)/cuda/%.o: cuda/%.cu $(B)/cuda_flags mk/nvcc.sh
	$(call say,NVCC)
	$(Q)PTX=$(B)/ptx OLDEST=$(oldest) VIRTUAL='$(call virtual,$(CUDA_ARCHS))' \
	    sh mk/nvcc.sh $@ $(NVCC) $(NVCC_FLAGS) $(call nvcc_code,$<) -c $<
CUBLAS_LT = $(notdir $(firstword $(wildcard $(CUBLAS)/lib/libcublasLt.so.*)))
$(B)/libweft_cuda.so: $(CUDA_OBJ) core/install/plugin.map
	$(call say,LINK)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(NVCC_EACH) -shared -cudart static -Xlinker --build-id \
	    -Xlinker --version-script=core/install/plugin.map -o $@ $(CUDA_OBJ) \
	    $(if $(CUBLAS),-L$(CUBLAS)/lib -l:$(CUBLAS_LT) -Xlinker -rpath=$(CUBLAS)/lib,-lcublasLt)
	$(if $(F64),@ln -sf $(@F) $(@D)/libweft_cuda_f64.so)

# ---- the emulation: g++ compiles the same sources with tests/emu, for tests without a GPU ----
EMU_CPP  := $(filter-out %_test.cpp %/nccl.cpp,$(wildcard tests/emu/*.cpp))
PTX_CPP  := $(filter-out %_test.cpp,$(wildcard tests/ptx/*.cpp))
EMU_OBJ  := $(CUDA_SRC:%.cu=$(B)/emu/%.o) $(EMU_CPP:tests/emu/%.cpp=$(B)/emu/%.o) \
            $(PTX_CPP:tests/ptx/%.cpp=$(B)/emu/ptx/%.o)
EMULATED := $(B)/emu/libweft_cuda.so $(B)/emu/libnccl.so
WARN_EMU := -Wall -Wextra -Wno-missing-field-initializers $(if $(WERROR),-Werror)
EMU_FLAGS = -std=c++17 -ffp-contract=off -include tests/emu/cuda_emu.h -I. $(WARN_EMU) $(CUDA_NAMES) \
            $(CFLAGS) $(VFLAGS) -fPIC -fvisibility=hidden -MMD -MP
LINK_EMU  = $(CXX) $(VFLAGS) $(CFLAGS)
$(B)/emu/cuda/%.o: cuda/%.cu $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(call say,EMU )
	$(Q)$(CXX) -x c++ $(EMU_FLAGS) -c -o $@ $<
$(B)/emu/ptx/%.o: tests/ptx/%.cpp $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(call say,EMU )
	$(Q)$(CXX) $(EMU_FLAGS) $(if $(SANITIZED),,-O3) -march=x86-64-v3 -ffp-contract=off -c -o $@ $<
$(B)/emu/%.o: tests/emu/%.cpp $(B)/flags | $(BUILD)/.needs-test
	@mkdir -p $(@D)
	$(call say,EMU )
	$(Q)$(CXX) $(EMU_FLAGS) -c -o $@ $<
$(B)/emu/emu_test: $(B)/emu/emu_test.o $(filter-out $(B)/emu/cuda/%,$(EMU_OBJ))
	$(call say,LINK)
	$(Q)$(LINK_EMU) -o $@ $^ -lpthread
$(B)/emu/ptx_test: $(B)/emu/ptx/ptx_test.o $(filter-out %/launched.o,$(filter $(B)/emu/ptx/%,$(EMU_OBJ)))
	$(call say,LINK)
	$(Q)$(LINK_EMU) -o $@ $^
$(B)/emu/libweft_cuda.so: $(EMU_OBJ) tests/emu/plugin.map
	$(call say,LINK)
	$(Q)$(LINK_EMU) -shared -Wl,--build-id,--version-script,tests/emu/plugin.map -o $@ $(EMU_OBJ) -lpthread
	$(if $(F64),@ln -sf $(@F) $(@D)/libweft_cuda_f64.so)
$(B)/emu/libnccl.so: $(B)/emu/nccl.o $(B)/emu/libweft_cuda.so
	$(call say,LINK)
	$(Q)$(LINK_EMU) -shared -Wl,-rpath,'$$ORIGIN' -o $@ $< -L$(@D) -l:libweft_cuda.so -lrt
-include $(CUDA_OBJ:.o=.d) $(EMU_OBJ:.o=.d) $(B)/emu/emu_test.d $(B)/emu/ptx/ptx_test.d $(B)/emu/nccl.d
