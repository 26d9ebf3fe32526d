import Dispatch
import Glibc
import Synchronization

/// A listener that sends exactly the bytes it is told to, and may behave as badly as a test wants.
final class RawServer: Sendable {
    let port: UInt16
    private let listener: Int32
    private let accepted = Mutex<[Int32]>([])

    /// How many connections came.
    var connectionCount: Int { accepted.withLock { $0.count } }

    /// Listens, and runs `serve` on a thread of each connection's own.
    init(_ serve: @escaping @Sendable (_ connection: Int32, _ number: Int) -> Void) {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let file = listener
        let bound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(file, $0, size) == 0 && listen(file, 64) == 0
                    && getsockname(file, $0, &size) == 0
            }
        }
        precondition(bound, "no listener")
        port = UInt16(bigEndian: address.sin_port)
        startThread { [weak self] in
            while true {
                let connection = accept(file, nil, nil)
                guard connection >= 0, let self else { return }
                let number = accepted.withLock { all in
                    all.append(connection)
                    return all.count - 1
                }
                startThread { serve(connection, number) }
            }
        }
    }

    deinit {
        // It wakes who accepts; the connections' threads see their ends.
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        accepted.withLock { all in
            for connection in all { shutdown(connection, Int32(SHUT_RDWR)) }
        }
    }

    /// Reads a request's head; false where the other end is gone.
    static func readHead(_ connection: Int32) -> Bool {
        var last: [UInt8] = []
        var byte: UInt8 = 0
        while unsafe recv(connection, &byte, 1, 0) == 1 {
            last.append(byte)
            if last.suffix(4) == [13, 10, 13, 10] { return true }
        }
        return false
    }

    @discardableResult
    static func send(_ connection: Int32, _ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return unsafe Glibc.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Ends a connection; its number stays taken until the server goes away.
    static func end(_ connection: Int32) { shutdown(connection, Int32(SHUT_RDWR)) }
}

/// Runs something on a thread of its own.
private func startThread(_ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "test.raw").async(execute: body)
}
