internal import Glibc

/// A plain HTTP server that can be asked whether it lives; no more than that.
struct HTTPPlace: Hashable, Sendable {
    /// The host's name or address.
    let host: String
    /// The port.
    let port: UInt16

    /// Reads `http://host`, `http://host:8080` or `http://[::1]:8080`, without a path.
    init?(_ url: String) {
        guard url.hasPrefix("http://") else { return nil }
        var rest = url.dropFirst("http://".count)
        if rest.last == "/" { rest.removeLast() }
        guard !rest.isEmpty, !rest.contains("/"), !rest.contains("@") else { return nil }
        if rest.first == "[" {
            guard let end = rest.firstIndex(of: "]") else { return nil }
            host = String(rest[rest.index(after: rest.startIndex)..<end])
            rest = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: ":") ?? rest.endIndex
            host = String(rest[..<end])
            rest = rest[end...]
        }
        guard !host.isEmpty else { return nil }
        if rest.isEmpty {
            port = 80
        } else {
            guard rest.first == ":", let number = UInt16(rest.dropFirst()) else { return nil }
            port = number
        }
    }

    /// Why there was no answer.
    struct Failure: Error {
        /// In words.
        var message: String
    }

    /// How long an answer is waited for.
    static let patienceSeconds = 5

    /// The status that a GET is answered with.
    func status(of path: String) throws(Failure) -> Int {
        let descriptor = try connected()
        defer { close(descriptor) }
        let name = host.contains(":") ? "[\(host)]" : host
        let request = Array(
            "GET \(path) HTTP/1.1\r\nHost: \(name):\(port)\r\nConnection: close\r\n\r\n".utf8
        )
        let sent = unsafe request.withUnsafeBytes {
            unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == request.count else {
            throw Failure(message: Self.reason("it cannot be asked"))
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while !answer.contains(0x0A), answer.count < 4096 {
            let count = unsafe buffer.withUnsafeMutableBytes {
                unsafe recv(descriptor, $0.baseAddress, $0.count, 0)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            answer += buffer[..<count]
        }
        let words = String(decoding: answer.prefix { $0 != 0x0D }, as: UTF8.self).split(
            separator: " "
        )
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else {
            throw Failure(
                message: answer.isEmpty
                    ? "no answer within \(Self.patienceSeconds) seconds"
                    : "what answers does not speak HTTP"
            )
        }
        return status
    }

    private func connected() throws(Failure) -> Int32 {
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let outcome = unsafe getaddrinfo(host, "\(port)", &hints, &list)
        guard outcome == 0 else {
            throw Failure(message: unsafe String(cString: gai_strerror(outcome)))
        }
        defer { unsafe freeaddrinfo(list) }
        var last = "no address"
        var next = unsafe list
        while let entry = unsafe next {
            unsafe next = entry.pointee.ai_next
            let descriptor = unsafe socket(
                entry.pointee.ai_family,
                Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue),
                0
            )
            guard descriptor >= 0 else { continue }
            // On Linux the limit for sending is that for connecting, too.
            var limit = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
            if unsafe connect(descriptor, entry.pointee.ai_addr, entry.pointee.ai_addrlen) == 0 {
                return descriptor
            }
            last = Self.reason("it cannot be reached")
            close(descriptor)
        }
        throw Failure(message: last)
    }

    private static func reason(_ what: String) -> String {
        "\(what): \(unsafe String(cString: strerror(errno)))"
    }
}
