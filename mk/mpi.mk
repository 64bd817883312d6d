# mpi.mk - builds the transports between ranks for Open MPI and MPICH, if their compilers are installed.
MPICC_openmpi := $(shell command -v mpicc.openmpi)
MPICC_mpich   := $(shell command -v mpicc.mpich)
MPI           ?=
ANY_MPI       := $(foreach m,openmpi mpich,$(if $(MPICC_$m),$(B)/libweft_$m.so))
TRANSPORTS    := $(if $(filter none,$(MPI))$(filter asan dasan tsan,$(V)),,$(ANY_MPI))
$(B)/libweft_%.so: parallel/mpi/mpi.c parallel/transport.h $(B)/flags
	@mkdir -p $(@D)
	$(call say,MPI )
	$(Q)OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(or $(MPICC_$*),mpicc.$*) $(BASE) $(CFLAGS) -fPIC \
	    -fvisibility=hidden -shared -o $@ $<
