#ifndef SUBLEDGER_COPENSSL_SHIM_H
#define SUBLEDGER_COPENSSL_SHIM_H

// What verifying needs of OpenSSL's libcrypto.
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <stdint.h>
#include <time.h>

/// Takes a reference of one's own to a borrowed key, which EVP_PKEY_up_ref says by a flag.
static inline EVP_PKEY *_Nullable shim_PKEY_retain(EVP_PKEY *_Nullable key) {
    return key != NULL && EVP_PKEY_up_ref(key) == 1 ? key : NULL;
}

/// Seconds since 1970 of a certificate's date; INT64_MIN where it is no date.
///
/// ASN1_TIME_to_tm needs a `struct tm` out, and timegm is not portable Swift.
static inline int64_t shim_ASN1_TIME_seconds(const ASN1_TIME *_Nullable time) {
    struct tm parts = {0};
    if (time == NULL || ASN1_TIME_to_tm(time, &parts) != 1) return INT64_MIN;
    return (int64_t)timegm(&parts);
}

/// The NID of the algorithm that signed a certificate.
///
/// X509_get_signature_nid exists, but only this reads the signed copy of the identifier.
static inline int shim_X509_signature_nid(const X509 *_Nonnull certificate) {
    const X509_ALGOR *algorithm = X509_get0_tbs_sigalg(certificate);
    return algorithm == NULL ? NID_undef : OBJ_obj2nid(algorithm->algorithm);
}

/// How many critical extensions a certificate has that OpenSSL does not know.
static inline int shim_X509_unknown_critical_count(const X509 *_Nonnull certificate) {
    int unknown = 0;
    for (int index = 0; index < X509_get_ext_count(certificate); index++) {
        X509_EXTENSION *extension = X509_get_ext(certificate, index);
        if (X509_EXTENSION_get_critical(extension) && !X509_supported_extension(extension)) {
            unknown++;
        }
    }
    return unknown;
}

#endif
