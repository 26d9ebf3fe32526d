#ifndef SUBLEDGER_CCURL_SHIM_H
#define SUBLEDGER_CCURL_SHIM_H

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// What is called while a request is under way; each gets `context` as its last argument.
struct shim_transfer {
    void *_Nonnull context;
    size_t (*_Nonnull body)(char *_Nullable bytes, size_t size, size_t count,
                            void *_Nullable context);
    size_t (*_Nonnull header)(char *_Nullable bytes, size_t size, size_t count,
                              void *_Nullable context);
    int (*_Nonnull progress)(void *_Nullable context, curl_off_t down_total, curl_off_t down,
                             curl_off_t up_total, curl_off_t up);
};

// curl_easy_setopt, curl_easy_getinfo and curl_global_init's flags are variadic or macros.

static inline CURLcode shim_set_long(CURL *_Nonnull handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode shim_set_size(CURL *_Nonnull handle, CURLoption option, int64_t value) {
    return curl_easy_setopt(handle, option, (curl_off_t)value);
}

/// The library copies the text.
static inline CURLcode shim_set_text(CURL *_Nonnull handle, CURLoption option,
                                     const char *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

/// The bytes are not copied: they must stay until the request is over.
static inline CURLcode shim_set_body(CURL *_Nonnull handle, const void *_Nullable bytes,
                                     size_t count) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
    // Without a pointer the library would read a body from the standard input.
    if (code == CURLE_OK) {
        code = curl_easy_setopt(handle, CURLOPT_POSTFIELDS, count == 0 ? "" : bytes);
    }
    return code;
}

/// The list is not copied either.
static inline CURLcode shim_set_headers(CURL *_Nonnull handle,
                                        const struct curl_slist *_Nullable list) {
    return curl_easy_setopt(handle, CURLOPT_HTTPHEADER, list);
}

/// Sets a place for messages, CURL_ERROR_SIZE bytes long, which must stay.
static inline CURLcode shim_set_message(CURL *_Nonnull handle, char *_Nullable place) {
    return curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, place);
}

/// Trusts the certificates of a PEM text, which is copied, and no others.
static inline CURLcode shim_set_anchors(CURL *_Nonnull handle, CURLoption option,
                                        const void *_Nonnull bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(handle, option, &blob);
}

static inline CURLcode shim_set_callbacks(CURL *_Nonnull handle,
                                          const struct shim_transfer *_Nonnull transfer) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, transfer->body);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_WRITEDATA, transfer->context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, transfer->header);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_HEADERDATA, transfer->context);
    if (code == CURLE_OK) {
        code = curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, transfer->progress);
    }
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_XFERINFODATA, transfer->context);
    if (code == CURLE_OK) code = curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    return code;
}

/// A number that the library knows of the last request; 0 where it knows none.
static inline long shim_get_long(CURL *_Nonnull handle, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(handle, info, &value) == CURLE_OK ? value : 0;
}

/// A duration in microseconds; 0 where that step was not reached.
static inline int64_t shim_get_time(CURL *_Nonnull handle, CURLINFO info) {
    curl_off_t value = 0;
    return curl_easy_getinfo(handle, info, &value) == CURLE_OK ? (int64_t)value : 0;
}

/// When the server's own certificate ends, in seconds since 1970; -1 where that is not known.
///
/// CURLINFO_CERTINFO hands out lists of lists of text.
static inline int64_t shim_certificate_end(CURL *_Nonnull handle) {
    static const char name[] = "Expire date:";
    struct curl_certinfo *found = NULL;
    if (curl_easy_getinfo(handle, CURLINFO_CERTINFO, &found) != CURLE_OK || found == NULL) return -1;
    if (found->num_of_certs < 1) return -1;
    for (struct curl_slist *line = found->certinfo[0]; line != NULL; line = line->next) {
        if (strncmp(line->data, name, sizeof name - 1) == 0) {
            return (int64_t)curl_getdate(line->data + sizeof name - 1, NULL);
        }
    }
    return -1;
}

static inline CURLcode shim_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }

#endif
