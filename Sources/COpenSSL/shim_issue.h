#ifndef SUBLEDGER_COPENSSL_SHIM_ISSUE_H
#define SUBLEDGER_COPENSSL_SHIM_ISSUE_H

// What issuing test certificates and signing need of OpenSSL's libcrypto.
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <stdint.h>

// Writes `scalar`, reduced into 1…n-1, to `reduced` and its public point, uncompressed, to
// `point`. Here in C because it is a chain of temporaries that all have to be freed.
static inline int shim_issue_key(const EC_GROUP *group, const uint8_t *scalar, int scalar_count,
                                 uint8_t *reduced, int width, uint8_t *point, int point_count) {
    int done = 0;
    BN_CTX *context = BN_CTX_new();
    EC_POINT *q = EC_POINT_new(group);
    BIGNUM *d = BN_bin2bn(scalar, scalar_count, NULL);
    BIGNUM *limit = BN_dup(EC_GROUP_get0_order(group));
    if (context && q && d && limit && BN_sub_word(limit, 1) && BN_mod(d, d, limit, context)
        && BN_add_word(d, 1) && BN_bn2binpad(d, reduced, width) == width
        && EC_POINT_mul(group, q, d, NULL, NULL, context)
        && EC_POINT_point2oct(group, q, POINT_CONVERSION_UNCOMPRESSED, point, (size_t)point_count,
                              context) == (size_t)point_count) {
        done = 1;
    }
    BN_clear_free(d);
    BN_free(limit);
    EC_POINT_free(q);
    BN_CTX_free(context);
    return done;
}

// An ECDSA signature r || s with a nonce that the caller derived. OpenSSL 3.0 has no call for
// deterministic signatures. Its time depends on the secrets: for test keys only.
static inline int shim_issue_sign(const EC_GROUP *group, const uint8_t *scalar, int width,
                                  const uint8_t *digest, int digest_count, const uint8_t *nonce,
                                  int nonce_count, uint8_t *signature) {
    int done = 0;
    const BIGNUM *order = EC_GROUP_get0_order(group);
    BN_CTX *context = BN_CTX_new();
    EC_POINT *point = EC_POINT_new(group);
    BIGNUM *d = BN_bin2bn(scalar, width, NULL);
    BIGNUM *e = BN_bin2bn(digest, digest_count, NULL);
    BIGNUM *k = BN_bin2bn(nonce, nonce_count, NULL);
    BIGNUM *r = BN_new();
    BIGNUM *s = BN_new();
    if (context && point && d && e && k && r && s && BN_nnmod(k, k, order, context)
        && !BN_is_zero(k) && EC_POINT_mul(group, point, k, NULL, NULL, context)
        && EC_POINT_get_affine_coordinates(group, point, r, NULL, context)
        && BN_nnmod(r, r, order, context) && !BN_is_zero(r) && BN_mod_mul(s, r, d, order, context)
        && BN_mod_add(s, s, e, order, context) && BN_mod_inverse(k, k, order, context)
        && BN_mod_mul(s, s, k, order, context) && !BN_is_zero(s)
        && BN_bn2binpad(r, signature, width) == width
        && BN_bn2binpad(s, signature + width, width) == width) {
        done = 1;
    }
    BN_clear_free(d);
    BN_clear_free(k);
    BN_free(e);
    BN_free(r);
    BN_free(s);
    EC_POINT_free(point);
    BN_CTX_free(context);
    return done;
}

// The private scalar of a PEM key on one of the two curves that are used; the width tells which,
// 0 that it is no such key. The parameter API would need a dozen calls from Swift.
static inline int shim_issue_read_pem(const char *text, int count, uint8_t *scalar, int capacity) {
    int width = 0;
    BIO *input = BIO_new_mem_buf(text, count);
    EVP_PKEY *key = input ? PEM_read_bio_PrivateKey(input, NULL, NULL, (void *)"") : NULL;
    BIGNUM *d = NULL;
    char curve[32] = {0};
    if (key && EVP_PKEY_get_group_name(key, curve, sizeof curve, NULL)
        && EVP_PKEY_get_bn_param(key, "priv", &d)) {
        int nid = OBJ_sn2nid(curve);
        width = nid == NID_X9_62_prime256v1 ? 32 : nid == NID_secp384r1 ? 48 : 0;
        if (width > capacity || (width && BN_bn2binpad(d, scalar, width) != width)) width = 0;
    }
    BN_clear_free(d);
    EVP_PKEY_free(key);
    BIO_free(input);
    return width;
}

// OpenSSL's own signature, with a random nonce and in constant time, as r || s.
static inline int shim_issue_sign_random(EVP_PKEY *key, const EVP_MD *hash, const uint8_t *message,
                                         size_t count, uint8_t *signature, int width) {
    int done = 0;
    uint8_t der[160];
    size_t der_count = sizeof der;
    const unsigned char *cursor = der;
    ECDSA_SIG *parts = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context && EVP_DigestSignInit(context, NULL, hash, NULL, key)
        && EVP_DigestSign(context, der, &der_count, message, count)
        && (parts = d2i_ECDSA_SIG(NULL, &cursor, (long)der_count))
        && BN_bn2binpad(ECDSA_SIG_get0_r(parts), signature, width) == width
        && BN_bn2binpad(ECDSA_SIG_get0_s(parts), signature + width, width) == width) {
        done = 1;
    }
    ECDSA_SIG_free(parts);
    EVP_MD_CTX_free(context);
    return done;
}

// Base64url without padding; returns the length. Signing a simulation's notices is dominated by
// this where Swift is built without optimisation, as in tests.
static inline size_t shim_issue_base64url(const uint8_t *bytes, size_t count, uint8_t *text) {
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t out = 0, in = 0;
    for (; in + 2 < count; in += 3) {
        uint32_t group = (uint32_t)bytes[in] << 16 | (uint32_t)bytes[in + 1] << 8 | bytes[in + 2];
        text[out++] = (uint8_t)alphabet[group >> 18];
        text[out++] = (uint8_t)alphabet[group >> 12 & 63];
        text[out++] = (uint8_t)alphabet[group >> 6 & 63];
        text[out++] = (uint8_t)alphabet[group & 63];
    }
    if (in < count) {
        uint32_t group = (uint32_t)bytes[in] << 16;
        if (in + 1 < count) group |= (uint32_t)bytes[in + 1] << 8;
        text[out++] = (uint8_t)alphabet[group >> 18];
        text[out++] = (uint8_t)alphabet[group >> 12 & 63];
        if (in + 1 < count) text[out++] = (uint8_t)alphabet[group >> 6 & 63];
    }
    return out;
}

#endif
