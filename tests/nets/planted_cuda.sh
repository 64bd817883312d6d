#!/usr/bin/env bash
# planted_cuda.sh    plants typical GPU bugs into copies of the emulated back end's sources. The named test must fail.
# MAKE and BUILD come from make, which has built everything else.
set -u
all=0
. tests/units.sh
B=$BUILD/emu
folder=$(realpath -m "$BUILD/planted_cuda")
export WEFT_TABLES="ref cuda" WEFT_TESTS=$PWD/tests WEFT_RECUR=block WEFT_EMU_ASYNC=1 WEFT_CACHE=off
rm -rf "$folder"
mkdir -p "$folder"

# INTO WHAT FILE SED UNIT [FILTER]: SED must change the file. With HEADER:FILE it changes a header that the file includes
net() {
    local into=$1 what=$2 edited=${3%%:*} file=${3#*:} program=$4 test=$5 filter=${6:-} order rc=0 runs
    runs=$(B=$BUILD program_of "$test")
    mkdir -p "$into/cuda"
    cp cuda/*.h "cuda/$file" "$into/cuda"
    sed -E "$program" "cuda/$edited" >"$into/cuda/$edited"
    if cmp -s "cuda/$edited" "$into/cuda/$edited"; then echo "  FAIL  $what: the sed changes nothing in cuda/$edited"; return; fi
    if ! ${CXX:-g++} -x c++ -std=c++17 -O1 -fPIC -fvisibility=hidden -include tests/emu/cuda_emu.h -I"$into" -I. -w -c -o "$into/x.o" "$into/cuda/$file" 2>"$into/log"; then
        echo "  FAIL  $what: does not compile"; head -n 5 "$into/log"; return
    fi
    local others=() source
    for source in cuda/*.cu tests/emu/*.cpp tests/ptx/*.cpp; do
        case $source in
        cuda/"$file"|*_test.cpp|*/nccl.cpp) ;;
        *.cu)        others+=("$B/${source%.cu}.o") ;;
        tests/emu/*) source=${source##*/}; others+=("$B/${source%.cpp}.o") ;;
        tests/ptx/*) source=${source##*/}; others+=("$B/ptx/${source%.cpp}.o") ;;
        esac
    done
    ${CXX:-g++} -shared -Wl,-z,defs,--version-script,tests/emu/plugin.map -o "$into/libweft_cuda.so" "$into/x.o" "${others[@]}" -lpthread || { echo "  FAIL  $what: does not link"; return; }
    cp "$B/libnccl.so" "$into"
    for order in 0 1 2; do
        WEFT_EMU_ORDER=$order WEFT_BACKEND_PATH=$into timeout 30 "$runs" --filter "$(filter_of "$test" "${filter##*/}")" >"$into/log" 2>&1 </dev/null || rc=1
        [ $rc = 0 ] || break
    done
    if [ "$what" = "no bug at all" ]; then
        if [ $rc = 0 ]; then echo "  ok    $what: $test"; else echo "  FAIL  $what, and $test fails"; tail -n 5 "$into/log"; fi
    elif [ $rc = 0 ]; then echo "  FAIL  $what: $test did not notice"; else echo "  ok    $what: $test, order $order"; fi
    rm -rf "$into"
}
catches() {                             # WHAT [HEADER:]FILE SED TEST [FILTER]; one process per core
    all=$((all + 1))
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    net "$folder/$all" "$@" >"$folder/$all.log" 2>&1 &
}

catches "no bug at all"                              sums.cu             '1s/sums/Sums/'                                            test_kernels 'kernels/sums'
catches "a missing barrier between two steps"        recur_block.cu      '0,/^        __syncthreads\(\);/s///'                       test_recur
catches "a NaN that becomes 0"                       ptx.h:recur_block.cu 's/return x == x \? x :/return true ? x :/'              test_recur 'recur/one_product*'
catches "one direction used for the other"           recur_block.cu      's/all.of\[blockIdx.y\]/all.of[0]/'                           test_recur_layer 'recur_layer/both*'
catches "one activation for both plain RNNs"         recur_steps.h:recur_block.cu 's/kernels_of\(cell\) == C \&\& r.cell == cell/false/' test_recur
export WEFT_RECUR=cluster
catches "a missing wait for the cluster's data"      recur_cluster.cu    's/^        if \(!receive\(&link, i, call\)\)/        if (false)/'         test_recur 'recur/wide*'
catches "a barrier that expects too few bytes"       recur_cluster.cu    's/expect\(&link, i, sizeof state\[0\]\)/expect(\&link, i, sizeof state[0] \/ 2)/'  test_recur 'recur/wide*'
export WEFT_RECUR=group WEFT_EMU_CC=120
catches "a number read without checking its tag"     recur_group.cu      's/complete &= .*;/(void)word;/'                                 test_recur 'recur/wide*'
catches "one buffer for even and odd steps"          recur_group.cu      's/use % 2 \* \(unsigned\)c.size/0 * use/'                    test_recur 'recur/wide*'
catches "two directions that share exchange words"   recur_group.cu      's/\(int\)blockIdx.y \* groups \+ group/group/'              test_recur_layer 'recur_layer/both*'
catches "only the first sequence of each group"      recur_group.cu      's/for \(; me.first < r.live.device\[0\];.*/if (group == 0)/'   test_recur 'recur/wide*'
catches "repeated tags"                              memory.cu           's/^    g->next_tag \+= tags;//'                             test_recur 'recur/wide*'
catches "swapped weights"                            recur_group.cu      's/(load_overflow\(\(const float4 \*\)overflow.global, i) - overflow.shared_products/\1/' test_recur 'recur/wide*'
unset WEFT_EMU_CC; export WEFT_RECUR=cluster
catches "a missing part of a long sum"                step_product.cu     's/int64_t i = 1; i < count/int64_t i = 2; i < count/'      test_recur 'recur/wide*'
catches "one tile of keys too few"                   attention.cu        's/key < keys; key \+= TILE/key + 1 < keys; key += TILE/'   test_kernels 'kernels/attention'
catches "TF32 instead of fp32"                       attention_cores.h:attention_cores.cu 's/->precision == WEFT_FP32/->precision == WEFT_STRICT_FP32/'  test_attention_cores '*/are*'
catches "a missing product of halves"                attention_cores.h:attention_cores_back.cu '/mma_tf32\(p.small\[i\], high, b_low\)/s/mma_tf32.*;/;/'  test_attention_cores '*/are*'
catches "swapped rows of a fragment"                 attention_cores.h:attention_cores.cu 's/j % 2 \* 8 \* LINE \+ j \/ 2 \* 4/j % 2 * 4 + j \/ 2 * 8 * LINE/'  test_attention_cores
catches "a run that adds to uninitialised memory"    attention_cores_back.cu 's/\|\| s.key % run != 0/|| true/'                          test_attention_cores
catches "rounding noise in the gradient of one key"   attention_cores_back.cu 's/s.key == 0 \&\& m.seen\[query\] == 1 \? y : //'           test_attention_cores '*/give_no*'
catches "a hidden infinity multiplied by 0"          attention_cores.cu  's/^    if \(nonfinite\) \{ .*/    if (nonfinite \&\& false) {/'             test_attention_cores '*/masked*'
catches "a missing guard at the tail"                pointwise.cu        's/i < n; i \+= index_step/i <= n; i += index_step/'        test_kernels 'kernels/flat'
catches "four numbers at an unaligned address"       groups.h:pointwise.cu 's/&& \(aligned\(x\) && \.\.\.\)/\&\& true/'              test_kernels_places
catches "a kernel on another stream"                 pointwise.cu        's/LAUNCH\(d, fill_each, ([^,]*\)), THREADS, 0, /LAUNCH_RAW(fill_each, \1, THREADS, 0, (cudaStream_t)0, /'  test_kernels 'kernels/flat'
catches "a wait that does nothing"                   device.cu           '/^void K\(wait\)/,/^}/s/synchronize\(d, __func__\)/(void)d/'    test_kernels 'kernels/flat'
catches "pinned memory overwritten too early"        device.cu           '/cudaEventSynchronize/d'                                  test_kernels 'kernels/uploads*'
catches "an upload that is not sent"                 device.cu           '/^    send\(d\);/d'                                      test_kernels 'kernels/memory'
catches "host code that reads device memory"         device.cu           's/^    launched\(d, cudaMemcpyAsync\(to, from, bytes, cudaMemcpyDeviceToDevice.*/    *(volatile char *)to;/' test_modules
catches "an index used out of range"                 index.cu            's/index\[r\] < n \? index\[r\] : -1/index[r]/'             test_kernels 'kernels/index'
catches "equal indices at one position"              scatter.cu          's/before \+= digit\[i\] == bin/before += 0/'             test_kernels 'kernels/index'
catches "a step whose states are not stored"         recur.cu            's/r.from \+ other \/ step_blocks/r.from + other \/ (step_blocks + 1)/'   test_recur_layer 'recur_layer/matches*'
catches "a block that starts at another's offset"     nests.cu           's/block = blockIdx.x - one.first/block = blockIdx.x/'     test_kernels 'kernels/blocks'
catches "a trial update that stores no gradient"     optimisers.cu       's/^        \*g = now\[0\];/        (void)now;/'            test_kernels_update 'kernels/rehearse'
catches "a first write that adds"                    norm.cu             's/put\(n.dgain \+ j, a, n.add_gain\)/put(n.dgain + j, a, true)/' test_kernels 'kernels/layer_norm'
export WEFT_RECUR= WEFT_CACHE=
catches "a kernel used without a test"               recur_choice.cu     "s/(results\[number_of\(c\)\]|result_of\(d, c\)) == '.' \|\| check_choice/true || check_choice/"  test_cuda_recur 'recur_choice/wrong*'
catches "a comparison that accepts all numbers"      recur_check.cu      's/^ +atomicExch\(different, 1u\);/{}/'                    test_cuda_recur 'recur_choice/wrong*'
catches "a link used before it is ready"             link.cu             's/: l->result == ncclSuccess;/: 1;/'                       test_cuda_link 'cuda_link/exchanges*'
catches "a message of too many numbers"              link.cu             's/ncclSend\(x, \(size_t\)n,/ncclSend(x, (size_t)n + 1,/'      test_cuda_link 'cuda_link/exchanges*'
catches "a rejected trial that counts as passed"     recur_check.cu      's/return cudaGetErrorString\(error\);/return NULL;/'      test_cuda_recur 'recur_choice/wrong*'
catches "a wait without an end"                      recur_wide.h:recur_cluster.cu 's/p.elapsed <= WAIT_LIMIT/true/'                       test_cuda_recur 'recur_choice/wait*'
catches "old numbers after a timeout"                recur_cluster.cu    's/^    fill_nan\(r, me, i, steps, r.reverse.*//'              test_cuda_recur 'recur_choice/wait*'
catches "a gradient after a timeout in a group"      recur_group.cu      's/^            dh\[0\] = NOT_A_NUMBER;/{}/'                 test_cuda_recur 'recur_choice/wait_for_a_g*'
catches "an ignored timeout of a kernel"             device.cu           's/c->timeout != ~0u/false/'                              test_cuda_recur 'recur_choice/wait*'
catches "a stored result of another driver"          kernel_cache.cu         's/cudaDriverGetVersion\(&cuda\)/cudaRuntimeGetVersion(\&cuda)/'  test_cuda_recur 'recur_choice/wrong*'
catches "a damaged file of results"                  kernel_cache.cu         's/return !strcmp\(whole, text\);/return true;/'            test_cuda_recur 'recur_choice/damaged*'
catches "a file that others can write"               kernel_cache.cu         's/ && !\(s.st_mode & 022\) &&/ \&\&/'                             test_cuda_recur 'recur_choice/damaged*'
catches "a failed query reported as an error"        device.cu           's/return refused\(cudaDeviceGetAttribute.*;/return failed((weft__device *)d, cudaDeviceGetAttribute(\&value, which, d->index), "recur") ? 0 : value;/'  test_cuda_recur 'recur_choice/refused*'
catches "attributes queried each time"               recur_choice.cu     's/if \(\*known == 0\)//'                                  test_cuda_recur 'recur_choice/depends*'
catches "a GPU that stays current"                   current_device.cu          's/driver.pop\(&previous\);/(void)previous;/'                        test_cuda_emulated 'emulated/caller*'
catches "a host program's error reported as ours"    device.cu           's/failed\(d, error, kernel\) \|\| !gpu_of/failed(d, cudaGetLastError(), kernel) || !gpu_of/'  test_cuda_emulated 'emulated/caller*'
catches "a GPU without code that opens"              device.cu           's/\|\| !loads\(d, &about\)//'                             test_cuda_emulated 'emulated/unusable*'
catches "an algorithm by the number of rows"         blas.cu             's/return kind\{ p->ta \? p->m : rows,/return kind{ p->m,/'                test_kernel_bits 'bits/a_product_does*'
catches "a split sum over k"                         blas.cu             's/key->ta \? WORKSPACE : 0\)/WORKSPACE)/'  test_kernel_bits 'bits/a_product_does*'
catches "padded rows that drop the old sum"          blas.cu             's/^        if \(p->add\)/        if (false)/'                   test_kernels 'kernels/gemm_of*'
catches "an overestimated alignment of rows"         blas.cu             's/\(step \| to_next\) \* sizeof/(to_next) * sizeof/'           test_kernels 'kernels/gemm'
catches "one GPU's attributes used for another"      recur_choice.cu     's/facts\[d->index\]/facts[0]/'                           test_cuda_recur 'recur_choice/attributes*'
catches "a kernel missing in the code"               recur_choice.cu     's/has_code\(kind, code.ptxVersion/has_code(kind, EVERY_ARCH/' test_cuda_recur 'recur_choice/code_of*'
catches "the slowest kernel"                         recur_tune.cu       's/t->best_ms\[kind\] < t->best_ms\[best\]/!(t->best_ms[kind] < t->best_ms[best])/'  test_cuda_recur 'recur_choice/fastest*'
catches "a forked child that uses the GPU"           table.cu            's/&& is_orphan\(d\)/\&\& false/'                         test_cuda_emulated 'emulated/forked*'
catches "a free that stops the device"               memory.cu           's/cudaFreeAsync\(p, g->stream\)\), g->freed/cudaFree(p)), g->freed/'  test_cuda_emulated 'emulated/ragged*'
catches "memory allocated on another stream"         memory.cu           's/\(p, bytes, g->pool, g->stream\)/(p, bytes, g->pool, (cudaStream_t)0)/'  test_cuda_emulated 'emulated/ragged*'
catches "messages from pool memory"                  memory.cu           's/lasts \|\| !g->pool/!g->pool/'                           test_cuda_link 'cuda_link/exchanges*'
catches "a pool that is never trimmed"               device.cu           's/^    pool_trim\(d\);//'                                  test_cuda_emulated 'emulated/pool_releases*'
catches "handles whose destruction waits"            blas.cu             's/^    d->release\(s->table/    cublasLtDestroy(s->handle), d->release(s->table/'  test_cuda_emulated 'emulated/products*'
export WEFT_RECUR=block
catches "three products instead of one"              recur_steps.h:recur_block.cu 's/if \(!one_product\)/if (true)/'                          test_recur 'recur/a_gpu*'
catches "one product instead of three"               recur_choice.cu     's/d->precision != WEFT_FP32/true/'                         test_recur 'recur/long*'
wait
for ((i = 1; i <= all; i++)); do cat "$folder/$i.log"; done
good=$(cat "$folder"/*.log | grep -c '^  ok ')
echo "$good of $all nets hold"
[ "$good" = "$all" ]
