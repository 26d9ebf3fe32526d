#ifndef SUBLEDGER_COPENSSL_SHIM_MULTIPLES_H
#define SUBLEDGER_COPENSSL_SHIM_MULTIPLES_H

#include <openssl/ec.h>

/// Makes the table of multiples of a group's generator; 1 where it is there afterwards.
///
/// OpenSSL 3 marks the function as deprecated and has no other for it.
static inline int shim_make_multiples(EC_GROUP *_Nonnull group, BN_CTX *_Nonnull room) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
    return EC_GROUP_precompute_mult(group, room);
#pragma clang diagnostic pop
}

#endif
