/* ssb_answers.h: checksums of the 13 answers; made by ssb_answers.py from the rows of CALL ssb. */
#ifndef BENCH_SSB_ANSWERS_H
#define BENCH_SSB_ANSWERS_H

#include "bench_suite.h"

static const struct known_answer ssb_answers[] = {
    {"0.01", "1.1", 1, 0xe159266d99836e4aULL, 0x44bd31d473cd01cbULL},
    {"0.01", "1.2", 1, 0xd7f6c4908f16a465ULL, 0x44bd31d473cd01cbULL},
    {"0.01", "1.3", 1, 0x706db0083d103834ULL, 0x44bd31d473cd01cbULL},
    {"0.01", "2.1", 228, 0xd7cca39ced6168f7ULL, 0x77f01f6a7d7401b8ULL},
    {"0.01", "2.2", 27, 0x860130b05aed307eULL, 0xcde25f5857931de0ULL},
    {"0.01", "2.3", 6, 0x3e0411af24b84d6eULL, 0x30ccd2842182cb3fULL},
    {"0.01", "3.1", 60, 0x1daa17e915bb96e5ULL, 0x9869d731674970ecULL},
    {"0.01", "3.2", 0, 0x0000000000000000ULL, 0x14650fb0739d0383ULL},
    {"0.01", "3.3", 0, 0x0000000000000000ULL, 0x14650fb0739d0383ULL},
    {"0.01", "3.4", 0, 0x0000000000000000ULL, 0x14650fb0739d0383ULL},
    {"0.01", "4.1", 28, 0x2d73bad0276065abULL, 0xf2a9abb84b35946aULL},
    {"0.01", "4.2", 77, 0xa1a1f86b3eb37d8fULL, 0xa4bfd4f60fb8e134ULL},
    {"0.01", "4.3", 10, 0xc8ef8163eaf20b62ULL, 0x27c817218572a6ccULL},
    {"0.1", "1.1", 1, 0x33b59b564e5dca6cULL, 0x44bd31d473cd01cbULL},
    {"0.1", "1.2", 1, 0xca2240eac2225c27ULL, 0x44bd31d473cd01cbULL},
    {"0.1", "1.3", 1, 0xa0dc29aaaba3d943ULL, 0x44bd31d473cd01cbULL},
    {"0.1", "2.1", 280, 0xa9129824812e6d99ULL, 0xea3d51fd8a562107ULL},
    {"0.1", "2.2", 56, 0xa2b68e247467fd25ULL, 0x965be8ef93ee4b7bULL},
    {"0.1", "2.3", 7, 0x44e3da881e5220dbULL, 0xd9139c8c2def596eULL},
    {"0.1", "3.1", 150, 0x5a1cf9efb492eb42ULL, 0x3e762d2c37d1931dULL},
    {"0.1", "3.2", 331, 0xc8c1ec052f911479ULL, 0x5ef90517ae7417abULL},
    {"0.1", "3.3", 12, 0xf2b52810565d227fULL, 0xcf5b535375318962ULL},
    {"0.1", "3.4", 2, 0x936b9207741be9d1ULL, 0xb059518bc16eab28ULL},
    {"0.1", "4.1", 35, 0xae9d9083c6577060ULL, 0x9a039fcebb9f957dULL},
    {"0.1", "4.2", 100, 0xe29e28b06a602fe9ULL, 0xa88e10eadaaabab9ULL},
    {"0.1", "4.3", 55, 0xe7e56736a3ab7523ULL, 0x968a7f93f01bdfc3ULL},
    {"1", "1.1", 1, 0x1d9f4d07dd67d163ULL, 0x44bd31d473cd01cbULL},
    {"1", "1.2", 1, 0xc9e2840c8c558703ULL, 0x44bd31d473cd01cbULL},
    {"1", "1.3", 1, 0x92c2f0526c2b5f8cULL, 0x44bd31d473cd01cbULL},
    {"1", "2.1", 280, 0x00ff849f6eb15a96ULL, 0xea3d51fd8a562107ULL},
    {"1", "2.2", 56, 0x1dc0a52d45baabfeULL, 0x965be8ef93ee4b7bULL},
    {"1", "2.3", 7, 0x226e1329d57a9dedULL, 0xd9139c8c2def596eULL},
    {"1", "3.1", 150, 0x884e1f3aba6c03cbULL, 0x4f48a48bafb959d6ULL},
    {"1", "3.2", 600, 0x76f6200916e65fd3ULL, 0x3d9efaf3bf8e8bbcULL},
    {"1", "3.3", 24, 0x856911467e6cdb27ULL, 0xc1ff8832fda3fee4ULL},
    {"1", "3.4", 4, 0x0adf142638058688ULL, 0xdce79709c1e10029ULL},
    {"1", "4.1", 35, 0x99fcceadae0ca239ULL, 0x9a039fcebb9f957dULL},
    {"1", "4.2", 100, 0xb01e72893c2f13e0ULL, 0xa88e10eadaaabab9ULL},
    {"1", "4.3", 337, 0x8b1db557f481dac1ULL, 0x9d208a9b6c216ab5ULL},
};

#endif
