internal import CCurl

/// An absolute address, `http` or `https`, without a user, a password or a fragment.
///
/// It is read by the library that will connect, so both mean the same host. `description` leaves
/// path and query out, since some services have their secrets there.
public struct HTTPURL: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The address as it was given.
    public let text: String

    /// Whether it is `https`.
    public let isSecure: Bool

    /// The host's name or address; IPv6 in brackets.
    public let host: String

    /// The port, also where the text leaves it out.
    public let port: Int

    /// Reads an address.
    ///
    /// - Throws: `HTTPClientError` with `request`, which says what is wrong but not with what.
    public init(_ text: String) throws(HTTPClientError) {
        // Others would be encoded by one and refused by another.
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), text.utf8.count <= 8_000 else {
            throw Self.failure("is too long or has a blank or a character that must be encoded")
        }
        guard !text.contains("#") else { throw Self.failure("has a fragment (#)") }
        guard let parts = unsafe curl_url() else { throw Self.failure("cannot be read") }
        defer { unsafe curl_url_cleanup(parts) }
        let flags = UInt32(CURLU_DISALLOW_USER | CURLU_PATH_AS_IS)
        let code = unsafe curl_url_set(parts, CURLUPART_URL, text, flags)
        guard code != CURLUE_USER_NOT_ALLOWED else {
            throw Self.failure("has a user or a password: those go into a header")
        }
        // The library also takes what nobody should write, such as `http:/host`.
        guard code == CURLUE_OK, let scheme = unsafe Self.part(parts, CURLUPART_SCHEME),
            scheme == "http" || scheme == "https",
            text.dropFirst(scheme.utf8.count).hasPrefix("://"),
            !text.dropFirst(scheme.utf8.count).hasPrefix(":///"),
            let host = unsafe Self.part(parts, CURLUPART_HOST), !host.isEmpty,
            let portText = unsafe Self.part(parts, CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)),
            let port = Int(portText), (1...65_535).contains(port)
        else { throw Self.failure("is not http://host or https://host with an optional path") }
        self.text = text
        isSecure = scheme == "https"
        self.host = host
        self.port = port
    }

    /// Scheme, host and port.
    public var origin: String { "\(isSecure ? "https" : "http")://\(host):\(port)" }

    /// Scheme, host and port.
    public var description: String { origin }

    /// Scheme, host and port alone, for `dump` as well.
    public var customMirror: Mirror { Mirror(self, children: ["origin": origin]) }

    private static func failure(_ what: String) -> HTTPClientError {
        HTTPClientError(code: .request, message: "the address \(what)")
    }

    private static func part(
        _ parts: OpaquePointer,
        _ part: CURLUPart,
        _ flags: UInt32 = 0
    ) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_get(parts, part, &text, flags) == CURLUE_OK, let text = unsafe text
        else { return nil }
        defer { unsafe curl_free(text) }
        return unsafe String(cString: text)
    }
}
