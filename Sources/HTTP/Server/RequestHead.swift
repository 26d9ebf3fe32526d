/// The headers of a request as they came, before anything of them is believed.
struct RequestHead: Sendable {
    var method: HTTPMethod
    var target: [UInt8]
    var version: String
    var headers: HTTPHeaders
    var headerBytes: Int
    /// Whether the target holds a U+0000, at which C strings end.
    var hasZeroInTarget: Bool

    /// How the body's end is found.
    enum Framing: Hashable, Sendable {
        case none
        case length(Int)
        case chunked
    }

    /// How the body's end is found; or why that is not certain.
    ///
    /// libmicrohttpd takes both headers together, prefers the coding, and of two lengths the first;
    /// a proxy in front may choose otherwise, and then one of the two sees a request that the
    /// other does not.
    func framing() -> Result<Framing, FramingRefusal> {
        for field in headers where !HTTPHeaders.isValidName(field.name) {
            return .failure(FramingRefusal(.invalidHeader))
        }
        let lengths = headers.all("Content-Length")
        let codings = headers.all("Transfer-Encoding")
        guard lengths.count + codings.count <= 1 else {
            return .failure(FramingRefusal(.ambiguousLength))
        }
        let hosts = headers.all("Host").count
        if hosts > 1 { return .failure(FramingRefusal(.invalidHeader)) }
        if hosts == 0, version != "HTTP/1.0" { return .failure(FramingRefusal(.missingHost)) }
        if let coding = codings.first {
            guard HTTPHeaders.isSame(coding, "chunked"), version != "HTTP/1.0" else {
                return .failure(FramingRefusal(.invalidLength))
            }
            return .success(.chunked)
        }
        guard let length = lengths.first else { return .success(.none) }
        guard !length.isEmpty, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let count = Int(length)
        else { return .failure(FramingRefusal(.invalidLength)) }
        return .success(count == 0 ? .none : .length(count))
    }

    /// A `Refusal` as an error.
    struct FramingRefusal: Error {
        let refusal: Refusal

        init(_ refusal: Refusal) {
            self.refusal = refusal
        }
    }
}

/// What is decided of a request when its headers are there.
struct Admission: Sendable {
    enum Verdict: Sendable {
        case serve(Route, parameters: [String: String])
        /// Refused; the body is read to its end first where it is small.
        case refuse(Refusal, allow: [HTTPMethod])
    }

    var verdict: Verdict
    var target: RequestTarget?
    var route: String?
    var bodyLimitBytes: Int
    /// Whether the answer goes out before the body, and the connection is closed.
    var isAtOnce: Bool
    var expectedBodyBytes: Int

    /// Decides by the headers alone.
    init(_ head: RequestHead, router: Router, configuration: HTTPServerConfiguration) {
        bodyLimitBytes = configuration.discardLimitBytes
        isAtOnce = true
        expectedBodyBytes = 0
        let framing: RequestHead.Framing
        switch head.framing() {
        case .failure(let error):
            verdict = .refuse(error.refusal, allow: [])
            return
        case .success(let found):
            framing = found
        }
        verdict = Self.verdict(head, router: router, configuration: configuration, &target)
        if case .serve(let route, _) = verdict {
            self.route = route.template.description
            bodyLimitBytes = route.bodyLimitBytes
            if let refusal = Self.bodyRefusal(head, framing, route) {
                verdict = .refuse(refusal, allow: [])
                bodyLimitBytes = max(bodyLimitBytes, configuration.discardLimitBytes)
            }
        }
        isAtOnce = false
        if case .length(let count) = framing {
            expectedBodyBytes = min(count, bodyLimitBytes)
            if count > bodyLimitBytes {
                isAtOnce = true
                if case .serve = verdict { verdict = .refuse(.bodyTooLarge, allow: []) }
            }
        }
        if case .refuse(let refusal, _) = verdict, refusal.response().closesConnection {
            isAtOnce = true
        }
    }

    private static func verdict(
        _ head: RequestHead,
        router: Router,
        configuration: HTTPServerConfiguration,
        _ target: inout RequestTarget?
    ) -> Verdict {
        if head.headerBytes > configuration.headerLimitBytes {
            return .refuse(.headersTooLarge, allow: [])
        }
        if head.target.count > configuration.targetLimitBytes {
            return .refuse(.targetTooLong, allow: [])
        }
        guard HTTPMethod.known.contains(head.method) else {
            return .refuse(.methodNotImplemented, allow: [])
        }
        guard !head.hasZeroInTarget, let decoded = RequestTarget(head.target) else {
            return .refuse(.invalidTarget, allow: [])
        }
        target = decoded
        if let expectation = head.headers["Expect"],
            !HTTPHeaders.isSame(expectation, "100-continue")
        {
            return .refuse(.expectation, allow: [])
        }
        if decoded.isAsterisk {
            return head.method == .options
                ? .refuse(.methodNotAllowed, allow: router.methods)
                : .refuse(.invalidTarget, allow: [])
        }
        switch router.match(head.method, decoded.path) {
        case .route(let route, let parameters): return .serve(route, parameters: parameters)
        case .notFound: return .refuse(.notFound, allow: [])
        case .otherMethods(let methods): return .refuse(.methodNotAllowed, allow: methods)
        }
    }

    private static func bodyRefusal(
        _ head: RequestHead,
        _ framing: RequestHead.Framing,
        _ route: Route
    ) -> Refusal? {
        if framing == .none { return nil }
        for encoding in head.headers.all("Content-Encoding")
        where !HTTPHeaders.isSame(encoding, "identity") { return .contentEncoding }
        if !route.contentTypes.isEmpty, let type = head.headers["Content-Type"] {
            var name = type.prefix { $0 != ";" }
            while name.last == " " || name.last == "\t" { name.removeLast() }
            guard route.contentTypes.contains(where: { HTTPHeaders.isSame($0, String(name)) })
            else { return .mediaType }
        }
        return nil
    }
}
