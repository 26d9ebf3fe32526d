internal import CMicroHTTPD
internal import Glibc

/// What libmicrohttpd calls: from C to Swift, and nothing else.
///
/// The context is the server's `ServerCore`; a connection's is its `ConnectionRecord`, a request's
/// its `Exchange`, each retained once and let go in the call that is promised to be the last.
enum ServerCallbacks {
    static let accept: MHD_AcceptPolicyCallback = { context, address, _ in
        guard let core = unsafe core(context) else { return .NO }
        return unsafe core.accepts(address) ? .YES : .NO
    }

    static let connection: MHD_NotifyConnectionCallback = { context, connection, slot, code in
        guard let core = unsafe core(context), let connection = unsafe connection,
            let slot = unsafe slot
        else { return }
        switch code {
        case .CONNECTION_NOTIFY_STARTED:
            let record = unsafe core.connectionStarted(connection)
            unsafe slot.pointee = Unmanaged.passRetained(record).toOpaque()
        case .CONNECTION_NOTIFY_CLOSED:
            guard let pointer = unsafe slot.pointee else { return }
            let record = unsafe Unmanaged<ConnectionRecord>.fromOpaque(pointer).takeRetainedValue()
            unsafe slot.pointee = nil
            core.table.remove(record)
        @unknown default:
            return
        }
    }

    /// The request line is there: the one moment at which the target is as it came.
    static let target:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?
        ) -> UnsafeMutableRawPointer? = { context, target, connection in
            guard let core = unsafe core(context), let connection = unsafe connection,
                let pointer = unsafe shim_connection_context(connection)
            else { return nil }
            let bytes =
                unsafe target.map { text in
                    unsafe Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
                } ?? []
            // libmicrohttpd would now take the query apart, into the memory that the headers need;
            // where that is too little, 0.9.75 answers in the midst of reading and then waits for
            // ever. The text is in its own buffer, and writable: it finds an empty query.
            if let mark = bytes.firstIndex(of: UInt8(ascii: "?")), let target = unsafe target {
                unsafe UnsafeMutablePointer(mutating: target)[mark + 1] = 0
            }
            let exchange = Exchange(
                core: core,
                connectionRecord: unsafe Unmanaged<ConnectionRecord>.fromOpaque(pointer)
                    .takeUnretainedValue(),
                target: bytes
            )
            return unsafe Unmanaged.passRetained(exchange).toOpaque()
        }

    static let handle: MHD_AccessHandlerCallback = {
        _,
        connection,
        url,
        method,
        version,
        body,
        bodyCount,
        slot in
        guard let connection = unsafe connection, let url = unsafe url,
            let method = unsafe method, let version = unsafe version,
            let bodyCount = unsafe bodyCount, let pointer = unsafe slot?.pointee
        else { return .NO }
        let exchange = unsafe Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
        let call = unsafe HandlerCall(
            method: method,
            version: version,
            targetSpan: version - url,
            body: UnsafeRawBufferPointer(start: body, count: body == nil ? 0 : bodyCount.pointee)
        )
        // All of it is taken, whatever becomes of it.
        unsafe bodyCount.pointee = 0
        return unsafe exchange.proceed(connection, call: call) ? .YES : .NO
    }

    static let completed: MHD_RequestCompletedCallback = { _, connection, slot, code in
        guard let connection = unsafe connection, let pointer = unsafe slot?.pointee else { return }
        unsafe slot?.pointee = nil
        let exchange = unsafe Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue()
        unsafe exchange.end(connection, code)
    }

    @unsafe private static func core(_ context: UnsafeMutableRawPointer?) -> ServerCore? {
        unsafe context.map { unsafe Unmanaged<ServerCore>.fromOpaque($0).takeUnretainedValue() }
    }
}
