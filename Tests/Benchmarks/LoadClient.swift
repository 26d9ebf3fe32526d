internal import Glibc

/// Posts messages over many connections at once, from one thread, and times each answer.
///
/// It is as plain as a client can be, since it shares the machine with what it measures.
struct LoadClient {
    /// What a run came to.
    struct Outcome {
        /// From the first byte sent to the last answer, in seconds.
        var seconds = 0.0
        /// Seconds from a message's first byte to its answer, sorted.
        var latencies: [Double] = []
        /// How many answers had another status than 200.
        var refused = 0
        /// How many connections were lost.
        var lost = 0

        /// The time that a share of the answers took at most.
        func quantile(_ share: Double) -> Double {
            guard !latencies.isEmpty else { return 0 }
            return latencies[min(latencies.count - 1, Int(Double(latencies.count) * share))]
        }
    }

    private struct Line {
        var socket: Int32
        var message = 0
        var sent = 0
        var received: [UInt8] = []
        var since = 0.0
        var isBusy = false
    }

    let port: UInt16
    let connections: Int

    /// Sends every message once.
    func run(_ messages: [[UInt8]]) -> Outcome {
        var outcome = Outcome()
        var lines = (0..<connections).compactMap { _ in connected().map { Line(socket: $0) } }
        defer { for line in lines { close(line.socket) } }
        var polls = lines.map { pollfd(fd: $0.socket, events: Int16(POLLOUT), revents: 0) }
        var next = 0
        var done = 0
        let start = Self.now()
        while done < messages.count {
            for place in lines.indices where !lines[place].isBusy && next < messages.count {
                lines[place].message = next
                lines[place].sent = 0
                lines[place].isBusy = true
                lines[place].since = Self.now()
                next += 1
                polls[place].events = Int16(POLLOUT)
                if send(&lines[place], messages) { polls[place].events = Int16(POLLIN) }
            }
            guard lines.contains(where: \.isBusy) else { break }
            _ = unsafe poll(&polls, nfds_t(polls.count), 1000)
            for place in lines.indices where polls[place].revents != 0 && lines[place].isBusy {
                if polls[place].events == Int16(POLLOUT) {
                    if send(&lines[place], messages) { polls[place].events = Int16(POLLIN) }
                    continue
                }
                switch receive(&lines[place]) {
                case .some(let status):
                    outcome.latencies.append(Self.now() - lines[place].since)
                    if status != 200 { outcome.refused += 1 }
                    lines[place].isBusy = false
                    done += 1
                case nil where lines[place].socket < 0:
                    outcome.lost += 1
                    done += 1
                    lines[place].isBusy = false
                    polls[place].fd = -1
                case nil: break
                }
            }
        }
        outcome.seconds = Self.now() - start
        outcome.latencies.sort()
        return outcome
    }

    /// Sends what is left of a message; true when all of it is out.
    private func send(_ line: inout Line, _ messages: [[UInt8]]) -> Bool {
        let message = messages[line.message]
        while line.sent < message.count {
            let count = unsafe message[line.sent...].withUnsafeBytes { bytes in
                unsafe Glibc.send(
                    line.socket,
                    bytes.baseAddress,
                    bytes.count,
                    Int32(MSG_NOSIGNAL)
                )
            }
            guard count > 0 else { return false }
            line.sent += count
        }
        return true
    }

    /// The status, once the answer is whole; a lost connection has a negative socket afterwards.
    private func receive(_ line: inout Line) -> Int? {
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = unsafe chunk.withUnsafeMutableBytes { bytes in
            unsafe recv(line.socket, bytes.baseAddress, bytes.count, 0)
        }
        guard count > 0 else {
            if count < 0, errno == EAGAIN { return nil }
            close(line.socket)
            line.socket = -1
            return nil
        }
        line.received += chunk[..<count]
        let text = String(decoding: line.received, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return nil }
        guard let status = Int(text.dropFirst(9).prefix(3)) else { return nil }
        var length = 0
        for field in text[..<end.lowerBound].split(separator: "\r\n") {
            let parts = field.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "content-length" else { continue }
            length = Int(parts[1].drop { $0 == " " }) ?? 0
        }
        guard text[end.upperBound...].utf8.count >= length else { return nil }
        line.received.removeAll(keepingCapacity: true)
        return status
    }

    private func connected() -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        var yes: Int32 = 1
        unsafe setsockopt(
            descriptor,
            Int32(IPPROTO_TCP),
            TCP_NODELAY,
            &yes,
            socklen_t(MemoryLayout<Int32>.size)
        )
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        return descriptor
    }

    private static func now() -> Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
