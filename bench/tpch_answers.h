/* tpch_answers.h: checksums of the 22 answers; made by tpch_answers.py from dbgen's rows. */
#ifndef BENCH_TPCH_ANSWERS_H
#define BENCH_TPCH_ANSWERS_H

#include <stdint.h>

struct known_answer {
    const char *scale;
    int query;
    int64_t rows;
    uint64_t sum, order;
};
static const struct known_answer known_answers[] = {
    {"0.01", 1, 4, 0x83bf01029cb9c654ULL, 0x4451e08c5bbf99d5ULL},
    {"0.01", 2, 4, 0x8514d2623440444aULL, 0x571cdb64d24e2ee8ULL},
    {"0.01", 3, 10, 0x52457df617b314b6ULL, 0x9e6f571d41f7c9a4ULL},
    {"0.01", 4, 5, 0x25f3324160587602ULL, 0x023620bae1b73e2aULL},
    {"0.01", 5, 5, 0x3b607e3aba0c994bULL, 0x56d3917eeba8bcbdULL},
    {"0.01", 6, 1, 0xad0244f5afcbfdf5ULL, 0x44bd31d473cd01cbULL},
    {"0.01", 7, 4, 0xd29dfcb248b2a1a4ULL, 0x762ec11cfef9b83bULL},
    {"0.01", 8, 2, 0xb3b9d52d67b25cb3ULL, 0x1bf3220601262d46ULL},
    {"0.01", 9, 173, 0x533035f646eaaaaeULL, 0xdc930d2ebd4c1a1cULL},
    {"0.01", 10, 20, 0x6b54eb395d25e76cULL, 0xdadc1ac483791e4aULL},
    {"0.01", 11, 1, 0x72760a2d75c095beULL, 0xaa8881ca8e369ee7ULL},
    {"0.01", 12, 2, 0x5484dfb65b02102bULL, 0x432dd47e29388de6ULL},
    {"0.01", 13, 33, 0x8ae64fb9cdae2abcULL, 0xc3d8ed002785cfa6ULL},
    {"0.01", 14, 1, 0x1f6d236b77775836ULL, 0x44bd31d473cd01cbULL},
    {"0.01", 15, 1, 0x7465d514275a533dULL, 0x87c0b320eb1b82dcULL},
    {"0.01", 16, 296, 0x75d26ce179ac2236ULL, 0xc1939a72f2dcb425ULL},
    {"0.01", 17, 1, 0x44bda7d473cdca4dULL, 0x44bd31d473cd01cbULL},
    {"0.01", 18, 2, 0x2ca7d0841905d3baULL, 0x78271e9982c9ac3eULL},
    {"0.01", 19, 1, 0xd993c07aa07d89d7ULL, 0x44bd31d473cd01cbULL},
    {"0.01", 20, 1, 0xd89455cb870bbb3bULL, 0x1545b0b1f142cf2eULL},
    {"0.01", 21, 1, 0xec0d4659b90d61b4ULL, 0x27f0487571bd15daULL},
    {"0.01", 22, 7, 0x4c925426704f6c28ULL, 0x503f22fbcd2bf009ULL},
    {"0.1", 1, 4, 0x3fa555bd17e54d76ULL, 0x4451e08c5bbf99d5ULL},
    {"0.1", 2, 44, 0x068f1c4d0be4c506ULL, 0xcc9637e12a6ca76bULL},
    {"0.1", 3, 10, 0x86caf2d50996b718ULL, 0xdaa63e6242d41047ULL},
    {"0.1", 4, 5, 0x3780ce851daaa6b2ULL, 0x023620bae1b73e2aULL},
    {"0.1", 5, 5, 0x8f630dbc9058c6a7ULL, 0xdcc31fd62e356b1fULL},
    {"0.1", 6, 1, 0xbe7a42d978947c5cULL, 0x44bd31d473cd01cbULL},
    {"0.1", 7, 4, 0xaa4a5ca7f7f81a92ULL, 0x762ec11cfef9b83bULL},
    {"0.1", 8, 2, 0x011540335aeeb100ULL, 0x1bf3220601262d46ULL},
    {"0.1", 9, 175, 0x96d79c6646510f8eULL, 0xa884e637409ad9d3ULL},
    {"0.1", 10, 20, 0xd099290ba9f72f6dULL, 0x8afb97b6bb835712ULL},
    {"0.1", 11, 22, 0x8ac6ad9f3891fb2eULL, 0x64521aff2945fcc3ULL},
    {"0.1", 12, 2, 0xb21ab7733e5138aaULL, 0x432dd47e29388de6ULL},
    {"0.1", 13, 37, 0xfda48363673d9bdbULL, 0x0eef598d77bf9f31ULL},
    {"0.1", 14, 1, 0x9552c528aeecfb50ULL, 0x44bd31d473cd01cbULL},
    {"0.1", 15, 1, 0x4f8cac71a52325f5ULL, 0x40382c66e1f79c2bULL},
    {"0.1", 16, 2762, 0xeeb7ab3bb7a625dbULL, 0x921f0f427474b0caULL},
    {"0.1", 17, 1, 0x1f8670a0e61f1fd0ULL, 0x44bd31d473cd01cbULL},
    {"0.1", 18, 5, 0x5aed80f8f275e6c4ULL, 0xc2f4b194aa942df5ULL},
    {"0.1", 19, 1, 0xe4cfb04bd26755a3ULL, 0x44bd31d473cd01cbULL},
    {"0.1", 20, 9, 0x08eb98a3786f4035ULL, 0xb1fbcd3baccb3e76ULL},
    {"0.1", 21, 47, 0x9f4e2cf30bc146f6ULL, 0xbc512c7d0f91a4dcULL},
    {"0.1", 22, 7, 0x656f94ee36e0b48aULL, 0x503f22fbcd2bf009ULL},
    {"1", 1, 4, 0x47fd589944a8dce2ULL, 0x4451e08c5bbf99d5ULL},
    {"1", 2, 100, 0x8e91dcc45f1eda93ULL, 0xafd4a077783adaf1ULL},
    {"1", 3, 10, 0xd4f10753c1536d0dULL, 0x90f5948bb9334827ULL},
    {"1", 4, 5, 0x72e6f652ace7755aULL, 0x023620bae1b73e2aULL},
    {"1", 5, 5, 0xda6ee71c93e73558ULL, 0x2c232de5da738922ULL},
    {"1", 6, 1, 0x6b76c81f2f3397bbULL, 0x44bd31d473cd01cbULL},
    {"1", 7, 4, 0x79598fb75e9cc945ULL, 0x762ec11cfef9b83bULL},
    {"1", 8, 2, 0x36dfbc03d10ba732ULL, 0x1bf3220601262d46ULL},
    {"1", 9, 175, 0xa3d3074d32332113ULL, 0xa884e637409ad9d3ULL},
    {"1", 10, 20, 0xb9acb522c2f26147ULL, 0x8ad1d5fac0c44dfbULL},
    {"1", 11, 1048, 0xd86e9065b3e21d76ULL, 0x73e58b404f6636bcULL},
    {"1", 12, 2, 0x5b58afaf43cc917aULL, 0x432dd47e29388de6ULL},
    {"1", 13, 42, 0x1ff03236fff75929ULL, 0xe4205dc525d66d56ULL},
    {"1", 14, 1, 0x22eb9b714302a974ULL, 0x44bd31d473cd01cbULL},
    {"1", 15, 1, 0xef793c649c6d1323ULL, 0x9214969124983342ULL},
    {"1", 16, 18314, 0x5167a9a2051fda84ULL, 0x9fa1d983f417ffb1ULL},
    {"1", 17, 1, 0x5081c370fb31285dULL, 0x44bd31d473cd01cbULL},
    {"1", 18, 57, 0x4ce921d4998667dcULL, 0x83c99cb19dbeabfaULL},
    {"1", 19, 1, 0x51ebb4660f07c9e0ULL, 0x44bd31d473cd01cbULL},
    {"1", 20, 186, 0x5aae01de2da50d85ULL, 0xad934dc886ef3f3fULL},
    {"1", 21, 100, 0x5691d1dd5e7e493dULL, 0x472111fabe62b082ULL},
    {"1", 22, 7, 0x287b33e8f6b41b3eULL, 0x503f22fbcd2bf009ULL},
};

#endif
