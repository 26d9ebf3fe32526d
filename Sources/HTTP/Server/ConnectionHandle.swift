internal import CMicroHTTPD

/// A connection of libmicrohttpd, as far as another thread may touch it.
@safe struct ConnectionHandle: @unchecked Sendable {
    // Safety: a suspended connection lives until it was resumed, and resuming is allowed from any
    // thread. Whoever holds a handle gives it up, under its lock, before the request ends.
    private let connection: OpaquePointer

    @unsafe init(_ connection: OpaquePointer) {
        unsafe self.connection = connection
    }

    /// Stops serving the connection; only in its own thread.
    func suspend() { unsafe MHD_suspend_connection(connection) }

    /// Serves a suspended connection again.
    func resume() { unsafe MHD_resume_connection(connection) }
}
