#ifndef SUBLEDGER_COPENSSL_SHIM_H
#define SUBLEDGER_COPENSSL_SHIM_H

// What verifying needs of OpenSSL's libcrypto.
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <stdint.h>
#include <string.h>
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

/// The first http address at which a certificate's issuer answers OCSP, NULL where it names none.
///
/// To be freed with shim_free. A list of C strings is a macro type, which Swift cannot hold.
static inline char *_Nullable shim_OCSP_url(X509 *_Nonnull certificate) {
    STACK_OF(OPENSSL_STRING) *urls = X509_get1_ocsp(certificate);
    char *found = NULL;
    for (int index = 0; found == NULL && index < sk_OPENSSL_STRING_num(urls); index++) {
        const char *url = sk_OPENSSL_STRING_value(urls, index);
        if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) {
            found = OPENSSL_strdup(url);
        }
    }
    X509_email_free(urls);
    return found;
}

/// OPENSSL_free is a macro.
static inline void shim_free(void *_Nullable bytes) { OPENSSL_free(bytes); }

/// A question about one certificate, DER, without a nonce, so that answers can be cached.
///
/// The length, 0 where there is no memory. To be freed with shim_free.
static inline int shim_OCSP_question(X509 *_Nonnull certificate, X509 *_Nonnull issuer,
                                     unsigned char *_Nullable *_Nonnull der) {
    int count = 0;
    OCSP_REQUEST *request = OCSP_REQUEST_new();
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha256(), certificate, issuer);
    if (request != NULL && id != NULL && OCSP_request_add0_id(request, id) != NULL) {
        id = NULL; // The request owns it now.
        count = i2d_OCSP_REQUEST(request, der);
    }
    OCSP_CERTID_free(id);
    OCSP_REQUEST_free(request);
    return count > 0 ? count : 0;
}

/// What an answer says of a certificate.
enum shim_OCSP_verdict {
    shim_OCSP_good,
    shim_OCSP_revoked,
    /// The responder does not know the certificate.
    shim_OCSP_unknown,
    /// It is no answer, or one to another question.
    shim_OCSP_unreadable,
    /// The responder says that it cannot answer now.
    shim_OCSP_refused,
    /// Neither the issuer nor somebody whom it let answer signed it.
    shim_OCSP_unsigned,
    /// It is not from now.
    shim_OCSP_stale,
};

/// Reads an answer: who signed it, what it says, and until when (`until`, INT64_MAX where it does
/// not say). `now` and `skew` are seconds.
///
/// One function, since each of its temporaries has to be freed whatever the others came to.
static inline enum shim_OCSP_verdict shim_OCSP_read(X509 *_Nonnull certificate,
                                                    X509 *_Nonnull issuer,
                                                    const unsigned char *_Nullable der, long count,
                                                    int64_t now, int64_t skew,
                                                    int64_t *_Nonnull until) {
    enum shim_OCSP_verdict verdict = shim_OCSP_unreadable;
    const unsigned char *end = der;
    OCSP_RESPONSE *response = der == NULL ? NULL : d2i_OCSP_RESPONSE(NULL, &end, count);
    OCSP_BASICRESP *basic = NULL;
    OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha256(), certificate, issuer);
    X509_STORE *store = X509_STORE_new();
    STACK_OF(X509) *issuers = sk_X509_new_null();
    *until = INT64_MAX;
    if (response == NULL || end - der != count || id == NULL || store == NULL || issuers == NULL) {
        goto done;
    }
    if (OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
        verdict = shim_OCSP_refused;
        goto done;
    }
    if ((basic = OCSP_response_get1_basic(response)) == NULL) goto done;
    // The issuer is all that is trusted here: it, or whom it certified for OCSP, must have signed.
    if (X509_STORE_add_cert(store, issuer) != 1 || sk_X509_push(issuers, issuer) < 1) goto done;
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_time(X509_STORE_get0_param(store), (time_t)now);
    if (OCSP_basic_verify(basic, issuers, store, 0) != 1) {
        verdict = shim_OCSP_unsigned;
        goto done;
    }
    int status = -1, reason = -1;
    ASN1_GENERALIZEDTIME *revoked = NULL, *first = NULL, *next = NULL;
    if (OCSP_resp_find_status(basic, id, &status, &reason, &revoked, &first, &next) != 1) {
        goto done;
    }
    int64_t from = shim_ASN1_TIME_seconds((const ASN1_TIME *)first);
    if (next != NULL) *until = shim_ASN1_TIME_seconds((const ASN1_TIME *)next);
    if (from == INT64_MIN || from > now + skew || *until < now - skew) {
        verdict = shim_OCSP_stale;
    } else if (status == V_OCSP_CERTSTATUS_GOOD) {
        verdict = shim_OCSP_good;
    } else {
        verdict = status == V_OCSP_CERTSTATUS_REVOKED ? shim_OCSP_revoked : shim_OCSP_unknown;
    }
done:
    sk_X509_free(issuers);
    X509_STORE_free(store);
    OCSP_CERTID_free(id);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    return verdict;
}

#endif
