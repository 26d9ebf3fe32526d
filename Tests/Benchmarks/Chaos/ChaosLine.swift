internal import Glibc

/// One connection that posts a message and waits for the answer, as plainly as can be.
final class ChaosLine {
    /// What became of a message.
    enum Result {
        /// It did not go out whole: it cannot have been taken.
        case unsent
        /// It went out, and no answer came.
        case unanswered
        /// It was answered.
        case answered(status: Int, outcome: String, position: Int64?)
    }

    private static let patienceSeconds = 20

    private var socket: Int32 = -1
    private var port: UInt16 = 0

    deinit { hangUp() }

    /// Sends a message to a port of this machine.
    func send(_ message: [UInt8], to port: UInt16) -> Result {
        if port != self.port { hangUp() }
        if socket < 0 {
            guard connect(port) else { return .unsent }
        }
        var sent = 0
        while sent < message.count {
            let count = unsafe message[sent...].withUnsafeBytes { bytes in
                unsafe Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else {
                hangUp()
                return .unsent
            }
            sent += count
        }
        guard let answer = receive() else {
            hangUp()
            return .unanswered
        }
        return answer
    }

    private func receive() -> Result? {
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { bytes in
                unsafe recv(socket, bytes.baseAddress, bytes.count, 0)
            }
            guard count > 0 else { return nil }
            received += chunk[..<count]
            let text = String(decoding: received, as: UTF8.self)
            guard let end = text.firstRange(of: "\r\n\r\n") else { continue }
            guard let status = Int(text.dropFirst(9).prefix(3)) else { return nil }
            let head = text[..<end.lowerBound].lowercased()
            let length = Self.text(after: "content-length: ", in: head).flatMap { Int($0) } ?? 0
            let body = String(text[end.upperBound...])
            guard body.utf8.count >= length else { continue }
            if head.contains("connection: close") { hangUp() }
            return .answered(
                status: status,
                outcome: Self.quoted("outcome", in: body) ?? Self.quoted("reason", in: body) ?? "",
                position: Self.text(after: "\"position\":", in: body).flatMap { Int64($0) }
            )
        }
    }

    /// The word that follows a mark, up to what cannot be part of a number or a name.
    private static func text(after mark: String, in text: some StringProtocol) -> String? {
        guard let range = text.firstRange(of: mark) else { return nil }
        let rest = text[range.upperBound...].drop { $0 == " " }
        return String(rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
    }

    private static func quoted(_ name: String, in body: String) -> String? {
        text(after: "\"\(name)\":\"", in: body)
    }

    private func connect(_ port: UInt16) -> Bool {
        self.port = port
        let file = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe Glibc.connect(file, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(file)
            return false
        }
        var yes: Int32 = 1
        unsafe setsockopt(
            file,
            Int32(IPPROTO_TCP),
            TCP_NODELAY,
            &yes,
            socklen_t(MemoryLayout<Int32>.size)
        )
        var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        unsafe setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, size)
        unsafe setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &patience, size)
        socket = file
        return true
    }

    private func hangUp() {
        guard socket >= 0 else { return }
        close(socket)
        socket = -1
    }
}
