internal import CPostgres
internal import Glibc

/// Starts programs by `posix_spawn`: arguments go through as they are, no shell reads them.
package enum ChildProcess {
    /// How a child ended.
    package enum Ending: Equatable, Sendable {
        case exited(Int32)
        case killed(signal: Int32)
        /// It was no child of ours, or somebody else has waited for it.
        case unknown

        init(status: Int32) {
            let signal = status & 0x7F
            self = signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal: signal)
        }
    }

    /// Where a child's input, output and errors go.
    package struct Streams {
        /// The file that becomes the input; nil is the null device, -1 ours.
        package var input: Int32?
        /// The file that becomes the output and the errors; nil is the null device, -1 ours.
        package var output: Int32?

        /// Both the null device unless said otherwise.
        package init(input: Int32? = nil, output: Int32? = nil) {
            self.input = input
            self.output = output
        }

        /// The terminal, shared with this process.
        package static let inherited = Streams(input: -1, output: -1)
    }

    /// The environment of every server program: none of the caller's `PG…` variables, which
    /// would change where it looks and what it says, and messages in English.
    static let serverEnvironment = [
        "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ]

    /// Starts a program and returns its process id.
    ///
    /// - Parameters:
    ///   - arguments: the program's absolute path and what follows it.
    ///   - environment: nil hands on ours.
    ///   - folder: where it starts; the default is reachable for every account.
    ///   - isDetached: whether it gets a session of its own, so that Ctrl-C does not reach it.
    ///   - streams: where its input, output and errors go.
    /// - Returns: the process id.
    /// - Throws: `EmbeddedServerError` with the system's reason.
    package static func spawn(
        _ arguments: [String],
        environment: [String]? = serverEnvironment,
        folder: String? = "/",
        isDetached: Bool = true,
        streams: Streams = Streams()
    ) throws(EmbeddedServerError) -> Int32 {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe redirect(&actions, 0, to: streams.input)
        unsafe redirect(&actions, 1, to: streams.output)
        unsafe redirect(&actions, 2, to: streams.output)
        // Whatever else is open here, a server would hold open for as long as it runs: whoever
        // waits for the end of a pipe that was handed to us would wait for that.
        if isDetached { _ = unsafe shim_spawn_close_from(&actions, 3) }
        if let folder { _ = unsafe shim_spawn_chdir(&actions, folder) }

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        // A blocked or ignored signal would be inherited, and the server could not be stopped.
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        var flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        if isDetached { flags |= shim_spawn_setsid() }
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))

        var process: pid_t = 0
        let result = unsafe withCStrings(arguments) { words in
            guard let environment else {
                return unsafe posix_spawn(
                    &process,
                    arguments[0],
                    &actions,
                    &attributes,
                    words,
                    environ
                )
            }
            return unsafe withCStrings(environment) { variables in
                unsafe posix_spawn(
                    &process,
                    arguments[0],
                    &actions,
                    &attributes,
                    words,
                    variables
                )
            }
        }
        guard result == 0 else {
            errno = result
            throw FileSystem.failure("cannot run \(arguments[0])")
        }
        return process
    }

    /// Runs a program to its end and returns how it ended and what it wrote, errors included.
    package static func run(
        _ arguments: [String],
        environment: [String]? = serverEnvironment
    ) throws(EmbeddedServerError) -> (ending: Ending, output: String) {
        var ends: [Int32] = [0, 0]
        guard unsafe shim_pipe2(&ends, O_CLOEXEC) == 0 else {
            throw FileSystem.failure("cannot make a pipe")
        }
        defer { close(ends[0]) }
        let process: pid_t
        do {
            defer { close(ends[1]) }
            process = try spawn(
                arguments,
                environment: environment,
                streams: Streams(output: ends[1])
            )
        }
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe read(ends[0], buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            output.append(contentsOf: chunk[..<count])
        }
        return (wait(for: process), String(decoding: output, as: UTF8.self))
    }

    /// Waits until a child has ended.
    package static func wait(for process: Int32) -> Ending {
        var status: Int32 = 0
        while true {
            let result = unsafe waitpid(process, &status, 0)
            if result == process { return Ending(status: status) }
            guard result < 0, errno == EINTR else { return .unknown }
        }
    }

    /// How a child ended, or nil while it runs; the process need not be a child.
    static func poll(_ process: Int32) -> Ending? {
        var status: Int32 = 0
        let result = unsafe waitpid(process, &status, WNOHANG)
        if result == process { return Ending(status: status) }
        if result == 0 { return nil }
        return isRunning(process) ? nil : .unknown
    }

    /// Whether a process is there and is more than a zombie that nobody has waited for.
    package static func isRunning(_ process: Int32) -> Bool {
        guard process > 0, kill(process, 0) == 0 || errno == EPERM else { return false }
        guard let line = FileSystem.text("/proc/\(process)/stat") else { return false }
        // The name in brackets may hold anything, brackets too; the state follows the last one.
        guard let bracket = line.lastIndex(of: ")") else { return false }
        let state = line[line.index(after: bracket)...].first { $0 != " " }
        return state != "Z" && state != "X"
    }

    @unsafe private static func redirect(
        _ actions: inout posix_spawn_file_actions_t,
        _ stream: Int32,
        to file: Int32?
    ) {
        switch file {
        case -1: break
        case .some(let file):
            unsafe posix_spawn_file_actions_adddup2(&actions, file, stream)
        case nil:
            unsafe posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0)
        }
    }
}

/// Lends `strings` as C has them, the list ended by a null.
@unsafe private func withCStrings<Value>(
    _ strings: [String],
    _ body: ([UnsafeMutablePointer<CChar>?]) -> Value
) -> Value {
    let pointers = unsafe strings.map { unsafe strdup($0) }
    defer { unsafe pointers.withUnsafeBufferPointer { unsafe freeAll($0) } }
    return unsafe body(pointers + [nil])
}

/// Frees C strings made by `strdup`.
@unsafe func freeAll(_ pointers: UnsafeBufferPointer<UnsafeMutablePointer<CChar>?>) {
    var index = 0
    while index < pointers.count {
        unsafe free(pointers[index])
        index += 1
    }
}
