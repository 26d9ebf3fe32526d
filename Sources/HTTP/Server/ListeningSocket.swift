internal import Glibc

/// Makes the socket that connections come in by.
enum ListeningSocket {
    /// Opens, binds and listens; the caller owns the result.
    ///
    /// - Throws: `HTTPError` with `address`.
    static func open(address: IPAddress, port: UInt16) throws(HTTPError) -> Int32 {
        let family = address.isIPv4 ? AF_INET : AF_INET6
        let kind = Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC
        let file = socket(family, kind, 0)
        guard file >= 0 else { throw failure("no socket can be made") }
        var yes: Int32 = 1
        var no: Int32 = 0
        let size = socklen_t(MemoryLayout<Int32>.size)
        unsafe setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, size)
        // `::` is for both families, whatever the machine's default.
        if !address.isIPv4 {
            unsafe setsockopt(file, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &no, size)
        }
        guard unsafe address.withSocketAddress(port: port, { unsafe bind(file, $0, $1) }) == 0,
            listen(file, 1_024) == 0
        else {
            let error = failure("\(address) port \(port) cannot be listened on")
            close(file)
            throw error
        }
        return file
    }

    /// The port that a socket is bound to.
    static func port(of file: Int32) -> UInt16 {
        var storage = sockaddr_in6()
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        return unsafe withUnsafeMutableBytes(of: &storage) { bytes in
            guard let base = bytes.baseAddress,
                unsafe getsockname(file, base.assumingMemoryBound(to: sockaddr.self), &size) == 0
            else { return 0 }
            // The port is at the same place in both families' addresses.
            return unsafe UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self))
        }
    }

    /// Puts a socket that hears nothing in the place of a listening one, which closes that.
    ///
    /// `MHD_quiesce_daemon` is for this, but takes the socket out of each worker's epoll set while
    /// the worker, told to stop listening, does the same; whoever is second aborts the process. A
    /// closed socket leaves the sets by itself, and nobody can connect from that moment on.
    static func deafen(_ file: Int32) {
        let deaf = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard deaf >= 0 else {
            shutdown(file, Int32(SHUT_RDWR))
            return
        }
        dup2(deaf, file)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        close(deaf)
    }

    /// Lets the process open as many files as `count` connections need, within its hard limit.
    static func allowConnections(_ count: Int) throws(HTTPError) {
        let openFiles = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        // The database's sessions, files and the rest of the process.
        let wanted = rlim_t(count + 256)
        var limit = rlimit()
        guard unsafe getrlimit(openFiles, &limit) == 0, limit.rlim_cur < wanted else {
            return
        }
        limit.rlim_cur = min(max(limit.rlim_cur, wanted), limit.rlim_max)
        guard limit.rlim_cur >= wanted, unsafe setrlimit(openFiles, &limit) == 0 else {
            throw HTTPError(
                code: .openFiles,
                message: """
                    \(count) connections need \(wanted) open files, and the limit is \
                    \(limit.rlim_max): raise it (ulimit -n) or lower the connection limit
                    """
            )
        }
    }

    private static func failure(_ message: String) -> HTTPError {
        let reason = unsafe String(cString: strerror(errno))
        return HTTPError(code: .address, message: "\(message): \(reason)")
    }
}

extension IPAddress {
    /// Lends the address in the form of the socket calls.
    @unsafe func withSocketAddress<Value>(
        port: UInt16,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        if isIPv4 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(truncatingIfNeeded: bits).bigEndian
            return unsafe Self.lend(&address, body)
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        unsafe withUnsafeMutableBytes(of: &address.sin6_addr) { bytes in
            for index in 0..<16 {
                unsafe bytes[index] = UInt8(truncatingIfNeeded: bits >> ((15 - index) * 8))
            }
        }
        return unsafe Self.lend(&address, body)
    }

    @unsafe private static func lend<Address, Value>(
        _ address: inout Address,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
    ) -> Value {
        unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }
}
