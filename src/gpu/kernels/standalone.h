/* standalone.h: the end of a program that EXPLAIN (CUDA, STANDALONE) writes: puts the memory of a
 * recorded launch on the card, runs the kernel, and says whether it left what it left then.
 *
 * Memory is `wf_blocks`, each a run of words packed as (count, word) pairs, or with the top bit of
 * the count set as that many words; `wf_moves` are the words in it that are addresses: (block, word,
 * block it points into, bytes from there). Block number wf_block_count is the kernel's argument. What
 * a kernel leaves may lie in any order, so blocks are compared by the sum of their words; those with
 * addresses are not compared. */
static void wf_check(cudaError_t code, const char *what) {
    if (code != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
        exit(1);
    }
}

static void wf_unpack(const unsigned long long *from, unsigned long long *to,
                      unsigned long long words) {
    for (unsigned long long at = 0; at < words;) {
        unsigned long long count = *from & ~(1ULL << 63);
        int plain = *from++ >> 63 != 0;
        for (unsigned long long i = 0; i < count; i++) {
            to[at++] = plain ? *from++ : *from;
        }
        from += !plain;
    }
}

static unsigned long long wf_sum(const unsigned long long *words, unsigned long long count) {
    unsigned long long sum = 0;
    for (unsigned long long i = 0; i < count; i++) {
        sum += (words[i] & 0xffffffffULL) + (words[i] >> 32);
    }
    return sum;
}

int main() {
    enum { RUNS = 10 };
    static unsigned long long *host[WF_BLOCKS + 1], *card[WF_BLOCKS + 1];
    static struct kargs wf_args;
    unsigned long long total = 0;
    for (int b = 0; b <= WF_BLOCKS; b++) {
        host[b] = (unsigned long long *)calloc(wf_blocks[b].words + 1, 8);
        wf_unpack(wf_blocks[b].data, host[b], wf_blocks[b].words);
        total += wf_blocks[b].words * 8;
        wf_check(cudaMalloc((void **)&card[b], wf_blocks[b].words * 8 + 64), "cudaMalloc");
    }
    for (int m = 0; m < WF_MOVES; m++) {
        const unsigned long long *move = wf_moves[m];
        host[move[0]][move[1]] = (unsigned long long)(size_t)card[move[2]] + move[3];
    }
    memcpy(&wf_args, host[WF_BLOCKS], sizeof wf_args);
    wf_check(cudaFuncSetAttribute(k_woven, cudaFuncAttributeMaxDynamicSharedMemorySize, WF_SHARED),
             "cudaFuncSetAttribute");
    cudaEvent_t first, last;
    wf_check(cudaEventCreate(&first), "cudaEventCreate");
    wf_check(cudaEventCreate(&last), "cudaEventCreate");
    float best = 1e30f;
    for (int i = 0; i < RUNS; i++) { /* each from the memory as it was */
        for (int b = 0; b < WF_BLOCKS; b++) {
            wf_check(cudaMemcpy(card[b], host[b], wf_blocks[b].words * 8, cudaMemcpyHostToDevice),
                     "cudaMemcpy");
        }
        float ms = 0;
        wf_check(cudaEventRecord(first), "cudaEventRecord");
        k_woven<<<WF_GRID, WF_THREADS, WF_SHARED>>>(wf_args);
        wf_check(cudaEventRecord(last), "cudaEventRecord");
        wf_check(cudaDeviceSynchronize(), "k_woven");
        wf_check(cudaEventElapsedTime(&ms, first, last), "cudaEventElapsedTime");
        best = ms < best ? ms : best;
    }
    int compared = 0, different = 0;
    for (int b = 0; b < WF_BLOCKS; b++) {
        wf_check(cudaMemcpy(host[b], card[b], wf_blocks[b].words * 8, cudaMemcpyDeviceToHost),
                 "cudaMemcpy");
        if (wf_blocks[b].compared) {
            compared++;
            different += wf_sum(host[b], wf_blocks[b].words) != wf_blocks[b].sum_after;
        }
    }
    printf("step %d: %.1f KB in %d blocks, %.3f us; %d compared, %d different\n", WF_STEP,
           (double)total / 1e3, WF_BLOCKS, best * 1e3, compared, different);
    return different ? 1 : 0;
}
