internal import CMicroHTTPD

/// What libmicrohttpd says in one call of the handler.
@unsafe struct HandlerCall {
    var method: UnsafePointer<CChar>
    var version: UnsafePointer<CChar>
    /// How many bytes lie between the start of the target and that of the version.
    var targetSpan: Int
    var body: UnsafeRawBufferPointer
}

extension RequestHead {
    /// Reads the headers of a connection.
    @unsafe init(_ connection: OpaquePointer, _ call: HandlerCall, target: [UInt8]) {
        method = HTTPMethod(rawValue: unsafe String(cString: call.method))
        version = unsafe String(cString: call.version)
        self.target = target
        headerBytes = unsafe shim_header_size(connection)
        // The target and the version lie in one buffer with a zero between them; one more inside
        // of the target makes it look shorter than it is.
        let span = unsafe call.targetSpan
        hasZeroInTarget = span > target.count + 1 && span < 1 << 20
        var collected = HTTPHeaders()
        unsafe withUnsafeMutablePointer(to: &collected) { pointer in
            _ = unsafe MHD_get_connection_values_n(
                connection,
                .HEADER_KIND,
                { context, _, key, keyCount, value, valueCount in
                    guard let context = unsafe context, let key = unsafe key else { return .YES }
                    let headers = unsafe context.assumingMemoryBound(to: HTTPHeaders.self)
                    unsafe headers.pointee.add(
                        String(
                            decoding: UnsafeRawBufferPointer(start: key, count: keyCount),
                            as: UTF8.self
                        ),
                        trimmed(UnsafeRawBufferPointer(start: value, count: valueCount))
                    )
                    return .YES
                },
                pointer
            )
        }
        headers = collected
    }
}

/// A value without the blanks after it; libmicrohttpd takes only those before it away.
///
/// Those after a name are kept: a name with a blank is refused.
@unsafe private func trimmed(_ bytes: UnsafeRawBufferPointer) -> String {
    var count = bytes.count
    while count > 0, unsafe bytes[count - 1] == 0x20 || bytes[count - 1] == 0x09 { count -= 1 }
    return unsafe String(decoding: bytes.prefix(count), as: UTF8.self)
}
