import Glibc

/// A client that sends exactly the bytes it is told to, and may behave as badly as a test wants.
final class TestClient {
    struct Failure: Error {
        let message: String
    }

    /// One answer as it came.
    struct Reply: CustomStringConvertible {
        var status: Int
        var headers: [(name: String, value: String)]
        var body: [UInt8]

        var text: String { String(decoding: body, as: UTF8.self) }

        /// Short, since a body may be large.
        var description: String { "\(status), \(body.count) bytes" }

        subscript(name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    let file: Int32
    private var buffer: [UInt8] = []
    private(set) var hasEnded = false

    /// Connects; a read that takes longer than ten seconds fails.
    init(port: UInt16, timeoutSeconds: Int = 10) throws {
        file = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard file >= 0 else { throw Failure(message: "no socket: \(errno)") }
        var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
        unsafe setsockopt(
            file,
            SOL_SOCKET,
            SO_RCVTIMEO,
            &limit,
            socklen_t(MemoryLayout<timeval>.size)
        )
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        // The object is whole by now, so its end closes the socket.
        guard result == 0 else { throw Failure(message: "not connected: \(errno)") }
    }

    deinit { close(file) }

    /// Sends bytes; false where the other end takes no more.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Bool {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.send(
                    file,
                    buffer.baseAddress?.advanced(by: sent),
                    bytes.count - sent,
                    Int32(MSG_NOSIGNAL)
                )
            }
            if count <= 0 { return false }
            sent += count
        }
        return true
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(text.utf8) }

    /// Sends a request whose lines are given without their ends.
    @discardableResult
    func request(_ lines: String..., body: [UInt8] = []) -> Bool {
        send(lines.joined(separator: "\r\n").utf8 + Array("\r\n\r\n".utf8) + body)
    }

    /// Sends a request with a body and its length.
    @discardableResult
    func post(_ path: String, _ body: [UInt8], _ more: String...) -> Bool {
        var head = "POST \(path) HTTP/1.1\r\nHost: t\r\nContent-Length: \(body.count)\r\n"
        for line in more { head += line + "\r\n" }
        return send(head.utf8 + Array("\r\n".utf8) + body)
    }

    func shutdownWriting() { shutdown(file, Int32(SHUT_WR)) }

    /// Reads one answer.
    ///
    /// - Parameter hasBody: false after HEAD.
    /// - Returns: the answer.
    /// - Throws: `Failure` where none comes.
    func reply(hasBody: Bool = true) throws -> Reply {
        let head = try line()
        let parts = head.split(separator: " ")
        guard parts.count >= 2, let status = Int(parts[1]) else {
            throw Failure(message: "no status line: \(head)")
        }
        var reply = Reply(status: status, headers: [], body: [])
        while true {
            let field = try line()
            if field.isEmpty { break }
            let sides = field.split(separator: ":", maxSplits: 1)
            reply.headers.append(
                (String(sides[0]), String(sides.last.map { $0.drop { $0 == " " } } ?? ""))
            )
        }
        if !hasBody || status < 200 { return reply }
        if reply["Transfer-Encoding"] != nil {
            while true {
                let text = try line()
                guard let size = Int(text, radix: 16) else {
                    throw Failure(message: "no chunk size: \(text)")
                }
                reply.body += try take(size)
                _ = try line()
                if size == 0 { break }
            }
        } else if let length = reply["Content-Length"].flatMap({ Int($0) }) {
            reply.body = try take(length)
        }
        return reply
    }

    /// Whether the other end closes, and sends nothing before.
    func isClosed() -> Bool {
        while !hasEnded {
            guard buffer.isEmpty else { return false }
            do { try fill() } catch { return hasEnded }
        }
        return buffer.isEmpty
    }

    /// Whether the other end closes, whatever it sends before.
    func ends() -> Bool {
        while !hasEnded {
            do { try fill() } catch { return hasEnded }
        }
        return true
    }

    private func line() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 0x0A) {
                var line = buffer[..<end]
                if line.last == 0x0D { line.removeLast() }
                let text = String(decoding: line, as: UTF8.self)
                buffer.removeSubrange(...end)
                return text
            }
            try fill()
        }
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count { try fill() }
        let bytes = Array(buffer[..<count])
        buffer.removeSubrange(..<count)
        return bytes
    }

    private func fill() throws {
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = unsafe recv(file, &bytes, bytes.count, 0)
        if count > 0 {
            buffer += bytes[..<count]
            return
        }
        let error = errno
        // A time-out is not an end.
        hasEnded = count == 0 || error != EAGAIN
        throw Failure(message: count == 0 ? "closed" : "not read: \(error)")
    }
}
