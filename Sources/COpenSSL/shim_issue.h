#ifndef SUBLEDGER_COPENSSL_SHIM_ISSUE_H
#define SUBLEDGER_COPENSSL_SHIM_ISSUE_H

// What issuing test certificates and signing need of OpenSSL's libcrypto (the simulator's part).
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#endif
