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

#endif
