#ifndef SUBLEDGER_CMICROHTTPD_SHIM_H
#define SUBLEDGER_CMICROHTTPD_SHIM_H

#include <microhttpd.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/// Where libmicrohttpd's complaints go while a server starts; afterwards nothing is written.
struct shim_start_log {
    int is_open;
    char text[512];
};

/// Everything a server is started with.
struct shim_server_settings {
    int listen_socket;
    unsigned int thread_count;
    unsigned int connection_limit;
    unsigned int idle_timeout_seconds;
    size_t connection_memory_bytes;
    const char *_Nullable tls_key;
    const char *_Nullable tls_certificate;
    const char *_Nullable tls_priorities;
    void *_Nonnull context;
    MHD_AcceptPolicyCallback _Nonnull accept;
    MHD_AccessHandlerCallback _Nonnull handle;
    MHD_RequestCompletedCallback _Nonnull completed;
    MHD_NotifyConnectionCallback _Nonnull connection;
    void *_Nullable (*_Nonnull target)(void *_Nullable context, const char *_Nullable target,
                                       struct MHD_Connection *_Nullable connection);
    struct shim_start_log *_Nonnull log;
};

/// A va_list cannot be read in Swift.
static inline void shim_log(void *_Nullable context, const char *_Nonnull format, va_list values) {
    struct shim_start_log *log = (struct shim_start_log *)context;
    if (log != NULL && log->is_open) vsnprintf(log->text, sizeof log->text, format, values);
}

/// Leaves the target as it came: the server decodes it itself, and strictly.
static inline size_t shim_keep_escapes(void *_Nullable context,
                                       struct MHD_Connection *_Nullable connection,
                                       char *_Nonnull text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

/// MHD_start_daemon is variadic, so Swift cannot call it; the options go in as an array.
static inline struct MHD_Daemon *_Nullable shim_start(
    const struct shim_server_settings *_Nonnull settings) {
    struct MHD_OptionItem items[20];
    int count = 0;
#define SHIM_ADD(name, number, pointer) \
    items[count++] = (struct MHD_OptionItem) { (name), (intptr_t)(number), (void *)(pointer) }
    unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC
                         | MHD_USE_ERROR_LOG;
    SHIM_ADD(MHD_OPTION_LISTEN_SOCKET, settings->listen_socket, NULL);
    // A pool of one is refused; without a pool there is one thread.
    if (settings->thread_count > 1) {
        SHIM_ADD(MHD_OPTION_THREAD_POOL_SIZE, settings->thread_count, NULL);
    }
    SHIM_ADD(MHD_OPTION_CONNECTION_LIMIT, settings->connection_limit, NULL);
    SHIM_ADD(MHD_OPTION_CONNECTION_TIMEOUT, settings->idle_timeout_seconds, NULL);
    SHIM_ADD(MHD_OPTION_CONNECTION_MEMORY_LIMIT, settings->connection_memory_bytes, NULL);
    // MHD_OPTION_STRICT_FOR_CLIENT would refuse blanks in the target and a missing Host. 0.9.75
    // answers the latter with its headers twice; the server's own checks do both.
    SHIM_ADD(MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL);
    SHIM_ADD(MHD_OPTION_NOTIFY_COMPLETED, settings->completed, settings->context);
    SHIM_ADD(MHD_OPTION_NOTIFY_CONNECTION, settings->connection, settings->context);
    SHIM_ADD(MHD_OPTION_URI_LOG_CALLBACK, settings->target, settings->context);
    SHIM_ADD(MHD_OPTION_UNESCAPE_CALLBACK, shim_keep_escapes, NULL);
    if (settings->tls_key != NULL) {
        flags |= MHD_USE_TLS;
        SHIM_ADD(MHD_OPTION_HTTPS_MEM_KEY, 0, settings->tls_key);
        SHIM_ADD(MHD_OPTION_HTTPS_MEM_CERT, 0, settings->tls_certificate);
        SHIM_ADD(MHD_OPTION_HTTPS_PRIORITIES, 0, settings->tls_priorities);
    }
    SHIM_ADD(MHD_OPTION_END, 0, NULL);
#undef SHIM_ADD
    settings->log->is_open = 1;
    // The logger comes before the array, since reading the array may already complain.
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, 0, settings->accept, settings->context, settings->handle, settings->context,
        MHD_OPTION_EXTERNAL_LOGGER, shim_log, settings->log, MHD_OPTION_ARRAY, items,
        MHD_OPTION_END);
    settings->log->is_open = 0;
    return daemon;
}

/// MHD_get_connection_info is variadic.
static inline int shim_connection_socket(struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

/// The peer's address; libmicrohttpd's own copy, which lives as long as the connection.
static inline const struct sockaddr *_Nullable shim_connection_address(
    struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info == NULL ? NULL : info->client_addr;
}

/// What the connection callback has put there when the connection started.
static inline void *_Nullable shim_connection_context(
    struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/// The size of the request line and the headers, 0 while they are not whole.
static inline size_t shim_header_size(struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}

/// The status of what is being answered, by whomever; 0 before an answer.
static inline unsigned int shim_answer_status(struct MHD_Connection *_Nonnull connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_HTTP_STATUS);
    return info == NULL ? 0 : info->http_status;
}

#endif
