internal import CCurl

/// One of libcurl's handles with the connection that it keeps.
@safe final class EasyHandle: @unchecked Sendable {
    // Safety: made once, used by one thread at a time (who took it out of the pool), freed once.
    private let handle: UnsafeMutableRawPointer

    init() throws(HTTPClientError) {
        guard let handle = unsafe curl_easy_init() else {
            throw HTTPClientError(code: .library, message: "libcurl is out of memory")
        }
        unsafe self.handle = handle
    }

    deinit { unsafe curl_easy_cleanup(handle) }

    /// Does one request, with every option set anew.
    func perform(
        _ request: HTTPClientRequest,
        _ configuration: HTTPClientConfiguration,
        _ transfer: Transfer
    ) -> Result<HTTPClientResponse, HTTPClientError> {
        // Keeps connections, sessions and resolved names.
        unsafe curl_easy_reset(handle)
        var options = unsafe Options(handle: handle)
        set(configuration, request, &options)
        let list = HeaderList(request, configuration)
        unsafe options.note(shim_set_headers(handle, list.first))
        let context = Context(transfer: transfer, handle: self)
        let opaque = unsafe Unmanaged.passUnretained(context).toOpaque()
        var callbacks = unsafe shim_transfer(
            context: opaque,
            body: { unsafe Context.body($0, $1, $2, $3) },
            header: { unsafe Context.header($0, $1, $2, $3) },
            progress: { unsafe Context.progress($0, $2, $4) }
        )
        unsafe options.note(shim_set_callbacks(handle, &callbacks))
        var message = [CChar](repeating: 0, count: Int(CURL_ERROR_SIZE))
        let began = MonotonicClock.now
        let code = unsafe message.withUnsafeMutableBufferPointer { place in
            unsafe request.body.withUnsafeBytes { body in
                unsafe options.note(shim_set_message(handle, place.baseAddress))
                if unsafe !body.isEmpty || Self.alwaysHasBody.contains(request.method) {
                    unsafe options.note(shim_set_body(handle, body.baseAddress, body.count))
                }
                return withExtendedLifetime((list, context)) {
                    if let failure = options.failure { return failure }
                    return unsafe curl_easy_perform(handle)
                }
            }
        }
        // The places that it was given are about to go away.
        unsafe _ = shim_set_message(handle, nil)
        unsafe _ = shim_set_headers(handle, nil)
        guard code == CURLE_OK else {
            let text = String(decoding: message.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
            let report = Report(
                code: code,
                detail: text,
                url: request.url,
                halt: transfer.halt,
                hasBegun: hasBegun,
                verifyResult: unsafe shim_get_long(handle, CURLINFO_SSL_VERIFYRESULT),
                hasProxy: configuration.proxy != nil,
                waitedNanoseconds: MonotonicClock.now - began,
                wholeNanoseconds: configuration.wholeTimeout.nanoseconds
            )
            return .failure(report.error)
        }
        let ends = unsafe shim_certificate_end(handle)
        return .success(
            HTTPClientResponse(
                status: unsafe shim_get_long(handle, CURLINFO_RESPONSE_CODE),
                headers: transfer.headers,
                body: transfer.body,
                reusedConnection: unsafe shim_get_long(handle, CURLINFO_NUM_CONNECTS) == 0,
                elapsed: .nanoseconds(Int64(MonotonicClock.now - began)),
                certificateEnds: ends < 0 ? nil : ends
            )
        )
    }

    /// Whether there was a connection, so that the request has begun to be sent.
    fileprivate var hasBegun: Bool {
        unsafe shim_get_time(handle, CURLINFO_PRETRANSFER_TIME_T) > 0
    }

    private static let alwaysHasBody: Set<HTTPMethod> = [.post, .put, .patch]

    private func set(
        _ configuration: HTTPClientConfiguration,
        _ request: HTTPClientRequest,
        _ options: inout Options
    ) {
        options.set(CURLOPT_URL, request.url.text)
        options.set(CURLOPT_PATH_AS_IS, 1)
        options.set(CURLOPT_PROTOCOLS_STR, "http,https")
        options.set(CURLOPT_FOLLOWLOCATION, 0)
        options.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        options.set(CURLOPT_NOSIGNAL, 1)
        options.set(CURLOPT_FRESH_CONNECT, request.needsFreshConnection ? 1 : 0)
        // What has been idle for longer was likely closed by the server.
        options.set(CURLOPT_MAXAGE_CONN, 60)
        options.set(CURLOPT_TCP_KEEPALIVE, 1)
        options.set(CURLOPT_CONNECTTIMEOUT_MS, configuration.connectTimeout.milliseconds)
        options.set(CURLOPT_TIMEOUT_MS, configuration.wholeTimeout.milliseconds)
        // Where the length is announced nothing of a body that is too large is read. To the library
        // 0 is no limit, and HEAD announces what does not come.
        let limit = request.method == .head ? 0 : max(1, configuration.responseLimitBytes)
        options.setSize(CURLOPT_MAXFILESIZE_LARGE, Int64(limit))
        options.set(CURLOPT_USERAGENT, configuration.userAgent)
        // An empty text keeps the library from looking at the environment.
        options.set(CURLOPT_PROXY, configuration.proxy ?? "")
        options.set(CURLOPT_NOPROXY, "")
        options.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        options.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        options.set(CURLOPT_SSL_VERIFYPEER, 1)
        options.set(CURLOPT_SSL_VERIFYHOST, 2)
        options.set(CURLOPT_PROXY_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        options.set(CURLOPT_PROXY_SSL_VERIFYPEER, 1)
        options.set(CURLOPT_PROXY_SSL_VERIFYHOST, 2)
        options.set(CURLOPT_CERTINFO, request.url.isSecure ? 1 : 0)
        switch configuration.trustAnchors {
        case .system:
            break
        case .file(let path):
            options.trust(CURLOPT_CAPATH, CURLOPT_CAINFO, path)
            options.trust(CURLOPT_PROXY_CAPATH, CURLOPT_PROXY_CAINFO, path)
        case .pem(let text):
            options.trust(CURLOPT_CAPATH, CURLOPT_CAINFO, nil)
            options.trust(CURLOPT_PROXY_CAPATH, CURLOPT_PROXY_CAINFO, nil)
            options.setAnchors(CURLOPT_CAINFO_BLOB, text)
            options.setAnchors(CURLOPT_PROXY_CAINFO_BLOB, text)
        }
        switch request.method {
        case .get: options.set(CURLOPT_HTTPGET, 1)
        case .head: options.set(CURLOPT_NOBODY, 1)
        default: options.set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
        }
    }
}

/// Sets options and remembers the first that was refused.
@safe private struct Options {
    // Safety: lives within one `perform`, whose handle outlives it.
    private let handle: UnsafeMutableRawPointer
    private(set) var failure: CURLcode?

    init(handle: UnsafeMutableRawPointer) {
        unsafe self.handle = handle
    }

    mutating func note(_ code: CURLcode) {
        if code != CURLE_OK, failure == nil { failure = code }
    }

    mutating func set(_ option: CURLoption, _ value: Int) {
        unsafe note(shim_set_long(handle, option, value))
    }

    mutating func setSize(_ option: CURLoption, _ value: Int64) {
        unsafe note(shim_set_size(handle, option, value))
    }

    mutating func set(_ option: CURLoption, _ text: String) {
        unsafe note(shim_set_text(handle, option, text))
    }

    /// Trusts a file, or nothing, in the place of the system's folder and file.
    mutating func trust(_ folder: CURLoption, _ file: CURLoption, _ path: String?) {
        unsafe note(shim_set_text(handle, folder, nil))
        if let path {
            unsafe note(shim_set_text(handle, file, path))
        } else {
            unsafe note(shim_set_text(handle, file, nil))
        }
    }

    mutating func setAnchors(_ option: CURLoption, _ text: String) {
        let bytes = Array(text.utf8)
        unsafe note(shim_set_anchors(handle, option, bytes, bytes.count))
    }
}

/// The header lines as the library wants them.
@safe private final class HeaderList {
    // Safety: made here, read by the library while the object lives, freed with it.
    private(set) var first: UnsafeMutablePointer<curl_slist>?

    init(_ request: HTTPClientRequest, _ configuration: HTTPClientConfiguration) {
        // Waiting for "100 Continue" costs a second with servers that do not know it.
        add("Expect:")
        if request.headers["Content-Type"] == nil { add("Content-Type:") }
        for field in request.headers {
            let value = field.value.drop { $0 == " " || $0 == "\t" }
            // A line that ends with the colon would take the header out.
            add(value.isEmpty ? "\(field.name);" : "\(field.name): \(value)")
        }
    }

    deinit { unsafe curl_slist_free_all(first) }

    private func add(_ line: String) {
        guard let longer = unsafe curl_slist_append(first, line) else {
            preconditionFailure("libcurl is out of memory")
        }
        unsafe first = longer
    }
}

/// What the library calls back with.
private final class Context {
    let transfer: Transfer
    unowned let handle: EasyHandle

    init(transfer: Transfer, handle: EasyHandle) {
        self.transfer = transfer
        self.handle = handle
    }

    static func body(
        _ bytes: UnsafeMutablePointer<CChar>?,
        _ size: Int,
        _ count: Int,
        _ context: UnsafeMutableRawPointer?
    ) -> Int {
        let total = size * count
        let isTaken = unsafe transfer(context)?.takeBody(
            UnsafeRawBufferPointer(start: bytes, count: total)
        )
        // Any other number than that of the bytes given ends the transfer.
        return isTaken == true ? total : total + 1
    }

    static func header(
        _ bytes: UnsafeMutablePointer<CChar>?,
        _ size: Int,
        _ count: Int,
        _ context: UnsafeMutableRawPointer?
    ) -> Int {
        let total = size * count
        let isTaken = unsafe transfer(context)?.takeHeader(
            UnsafeRawBufferPointer(start: bytes, count: total)
        )
        return isTaken == true ? total : total + 1
    }

    static func progress(
        _ context: UnsafeMutableRawPointer?,
        _ down: curl_off_t,
        _ up: curl_off_t
    ) -> Int32 {
        guard let context = unsafe context else { return 1 }
        let own = unsafe Unmanaged<Context>.fromOpaque(context).takeUnretainedValue()
        let goesOn = own.transfer.goesOn(
            moved: Int64(down) + Int64(up),
            isConnected: own.handle.hasBegun
        )
        return goesOn ? 0 : 1
    }

    private static func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<Context>.fromOpaque(context).takeUnretainedValue().transfer
    }
}

extension Duration {
    /// The duration in milliseconds, at least 1: to the library 0 means no limit, or its own.
    fileprivate var milliseconds: Int { max(1, Int(nanoseconds / 1_000_000)) }
}
