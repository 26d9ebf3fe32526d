internal import CMicroHTTPD

/// An answer in libmicrohttpd's form.
@safe final class OutgoingResponse {
    /// The piece in which a body is sent at most.
    static let blockBytes = 32 * 1024

    private let response: OpaquePointer

    /// An answer that has all of its bytes.
    init?(_ bytes: [UInt8]) {
        let made = unsafe bytes.withUnsafeBytes { buffer in
            // It is copied, so that the constness may go.
            unsafe MHD_create_response_from_buffer(
                buffer.count,
                UnsafeMutableRawPointer(mutating: buffer.baseAddress),
                .RESPMEM_MUST_COPY
            )
        }
        guard let made = unsafe made else { return nil }
        unsafe response = made
    }

    /// An answer whose bytes come from a stream.
    init?(_ stream: OutgoingStream) {
        let context = unsafe Unmanaged.passRetained(stream)
        let made = unsafe MHD_create_response_from_callback(
            UInt64.max,
            Self.blockBytes,
            { context, _, buffer, count in
                guard let context = unsafe context, let buffer = unsafe buffer else { return -2 }
                let stream = unsafe Unmanaged<OutgoingStream>.fromOpaque(context)
                    .takeUnretainedValue()
                return unsafe stream.read(
                    UnsafeMutableRawBufferPointer(start: buffer, count: count)
                )
            },
            context.toOpaque(),
            { context in
                guard let context = unsafe context else { return }
                unsafe Unmanaged<OutgoingStream>.fromOpaque(context).release()
            }
        )
        guard let made = unsafe made else {
            unsafe context.release()
            return nil
        }
        unsafe response = made
    }

    deinit { unsafe MHD_destroy_response(response) }

    func add(_ name: String, _ value: String) {
        // libmicrohttpd has no empty values.
        if !value.isEmpty { _ = unsafe MHD_add_response_header(response, name, value) }
    }

    @unsafe func queue(status: Int, on connection: OpaquePointer) -> Bool {
        unsafe MHD_queue_response(connection, UInt32(status), response) == .YES
    }
}

/// A stream on its way to a client.
final class OutgoingStream {
    // MHD_CONTENT_READER_END_OF_STREAM and MHD_CONTENT_READER_END_WITH_ERROR.
    private static let endOfStream = -1
    private static let endWithError = -2

    private let source: BodySource
    private let connection: ConnectionHandle
    private let record: ConnectionRecord
    private let blockNanoseconds: UInt64
    private let exchange: Exchange

    init(
        source: BodySource,
        connection: ConnectionHandle,
        record: ConnectionRecord,
        blockNanoseconds: UInt64,
        exchange: Exchange
    ) {
        self.source = source
        self.connection = connection
        self.record = record
        self.blockNanoseconds = blockNanoseconds
        self.exchange = exchange
    }

    /// The client has taken what was there before, and can take this much.
    @unsafe func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        // Before the pipe is asked: a suspended connection is no longer this thread's.
        record.extend(until: MonotonicClock.now + blockNanoseconds)
        switch unsafe source.pipe.read(into: buffer, from: connection, whileWaiting: record) {
        case .bytes(let count):
            exchange.bytesSent += count
            return count
        case .suspended: return 0
        case .finished: return Self.endOfStream
        case .failed: return Self.endWithError
        }
    }
}
