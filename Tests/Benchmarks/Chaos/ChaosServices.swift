internal import Glibc
internal import Postgres
internal import Synchronization

/// The running services, each a process of the built program.
final class ChaosServices: Sendable {
    private struct Instance: Sendable {
        var process: Int32 = 0
        var port: UInt16 = 0
        var starts = 0
        /// Whether it is meant to run.
        var isWanted = false
    }

    private let words: [String]
    private let environment: [String]
    private let folder: String
    private let state: Mutex<[Instance]>

    init(count: Int, words: [String], environment: [String], folder: String) {
        self.words = words
        self.environment = environment
        self.folder = folder
        state = Mutex(Array(repeating: Instance(), count: count))
    }

    var count: Int { state.withLock { $0.count } }

    func port(_ number: Int) -> UInt16 { state.withLock { $0[number].port } }

    func logFile(_ number: Int) -> String { "\(folder)/serve.\(number).log" }

    /// Starts one and waits until it listens, on the same port as before.
    func start(_ number: Int) throws {
        let log = logFile(number)
        let offset = FileSystem.text(log) == nil ? 0 : Self.length(log)
        let file = unsafe open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw ChaosError("cannot write \(log)") }
        defer { close(file) }
        let listen = ["--listen", "127.0.0.1:\(port(number))"]
        let process = try ChildProcess.spawn(
            words + listen,
            environment: environment,
            folder: folder,
            streams: .init(output: file)
        )
        try FileSystem.write("\(process)\n", to: "\(folder)/serve.\(number).pid")
        state.withLock { instances in
            instances[number].process = process
            instances[number].isWanted = true
            instances[number].starts += 1
        }
        let end = Clock.seconds() + 90
        while Clock.seconds() < end {
            let text = FileSystem.text(log, from: offset) ?? ""
            if let range = text.firstRange(of: "\"listening\""),
                let line = text[range.upperBound...].split(separator: "\n").first,
                let port = line.firstRange(of: "\"port\":")
            {
                let digits = line[port.upperBound...].prefix(while: \.isNumber)
                state.withLock { $0[number].port = UInt16(digits) ?? 0 }
                return
            }
            guard ChildProcess.isRunning(process) else {
                _ = ChildProcess.wait(for: process)
                state.withLock { $0[number].process = 0 }
                throw ChaosError("serve ended while it started: \(text.suffix(2000))")
            }
            Clock.sleep(milliseconds: 10)
        }
        throw ChaosError("serve did not listen within 90 s")
    }

    /// Starts one again and again until it stays: the database may be away.
    func startWhenever(_ number: Int, _ shouldStop: () -> Bool) throws {
        let end = Clock.seconds() + 120
        while true {
            do { return try start(number) } catch {
                guard Clock.seconds() < end, !shouldStop() else { throw error }
                Clock.sleep(milliseconds: 100)
            }
        }
    }

    /// Ends one as a power cut would.
    func kill(_ number: Int) {
        let process = state.withLock { instances in
            instances[number].isWanted = false
            defer { instances[number].process = 0 }
            return instances[number].process
        }
        guard process > 0 else { return }
        _ = Glibc.kill(process, SIGKILL)
        _ = ChildProcess.wait(for: process)
    }

    /// Has one stand still for a while, with whatever it holds, as a machine that swaps does.
    func freeze(_ number: Int, milliseconds: Int) {
        let process = state.withLock { $0[number].process }
        guard process > 0 else { return }
        _ = Glibc.kill(process, SIGSTOP)
        Clock.sleep(milliseconds: milliseconds)
        _ = Glibc.kill(process, SIGCONT)
    }

    /// Asks one to end and waits for that.
    func terminate(_ number: Int) -> ChildProcess.Ending {
        let process = state.withLock { instances in
            instances[number].isWanted = false
            defer { instances[number].process = 0 }
            return instances[number].process
        }
        guard process > 0 else { return .unknown }
        _ = Glibc.kill(process, SIGTERM)
        return ChildProcess.wait(for: process)
    }

    /// Those that are gone though nobody ended them.
    var lost: [Int] {
        state.withLock { instances in
            instances.indices.filter { number in
                instances[number].isWanted && instances[number].process > 0
                    && !ChildProcess.isRunning(instances[number].process)
            }
        }
    }

    func killAll() { for number in 0..<count { kill(number) } }

    private static func length(_ path: String) -> Int {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        return Int(lseek(file, 0, SEEK_END))
    }
}

/// Something that a run cannot go on with.
struct ChaosError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
