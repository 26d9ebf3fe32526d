import Glibc
import Postgres

/// A TCP port that accepts connections and never says a word.
final class SilentListener {
    let port: Int
    private let listener: Int32

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = unsafe inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let bound = unsafe bind(listener, address, length)
                return unsafe bound == 0 && listen(listener, 8) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        guard result else {
            throw PostgresError(code: .unexpectedResult, message: "no port to listen on")
        }
    }

    deinit { close(listener) }
}
