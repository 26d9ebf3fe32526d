internal import Dispatch
internal import Synchronization

/// Writes the body of an answer piece by piece, in a thread of the caller's.
///
/// `write` waits while the client does not take what is there, so an answer of any length needs
/// only the buffer's memory. Where the writer goes away without `finish`, the connection is cut,
/// so that a client never takes a part for the whole.
public final class BodyWriter: Sendable {
    private let pipe: BodyPipe

    private init(pipe: BodyPipe) {
        self.pipe = pipe
    }

    deinit { pipe.close(isWhole: false) }

    /// Makes a stream: the body for an answer, and its writer.
    ///
    /// - Parameter bufferLimitBytes: from how many unsent bytes on `write` waits.
    /// - Returns: both ends.
    public static func makeStream(
        bufferLimitBytes: Int = 256 * 1024
    ) -> (body: HTTPResponse.Body, writer: BodyWriter) {
        let pipe = BodyPipe(limitBytes: max(1, bufferLimitBytes))
        return (.stream(BodySource(pipe: pipe)), BodyWriter(pipe: pipe))
    }

    /// Adds bytes, after waiting until there is room; one thread at a time.
    ///
    /// Waits for as long as the answer has not been sent at all, so hand the answer over first.
    ///
    /// - Throws: `HTTPError` with `readerGone`; nothing more needs to be written then.
    public func write(_ bytes: [UInt8]) throws(HTTPError) {
        try pipe.write(bytes)
    }

    /// Says that the body is whole.
    public func finish() { pipe.close(isWhole: true) }

    /// Cuts the connection: what was sent is not to be used.
    public func abort() { pipe.close(isWhole: false) }
}

/// The reading end of a stream; where it goes away, the writer is told.
public final class BodySource: Sendable {
    let pipe: BodyPipe

    init(pipe: BodyPipe) {
        self.pipe = pipe
    }

    deinit { pipe.abandon() }
}

/// The bytes between a writer's thread and a connection's.
final class BodyPipe: Sendable {
    /// What the connection's thread finds.
    enum Reading: Equatable {
        case bytes(Int)
        /// The connection was suspended; more will come.
        case suspended
        case finished
        case failed
    }

    private struct State: Sendable {
        var chunks: [[UInt8]] = []
        /// How many bytes of the first chunk were read.
        var offset = 0
        var unsent = 0
        /// Whether the writer is done, and said that all is there.
        var closed: Bool?
        var isAbandoned = false
        var isWriterWaiting = false
        var waiting: ConnectionHandle?
    }

    private let state = Mutex(State())
    private let room = DispatchSemaphore(value: 0)
    private let limitBytes: Int

    init(limitBytes: Int) {
        self.limitBytes = limitBytes
    }

    func write(_ bytes: [UInt8]) throws(HTTPError) {
        if bytes.isEmpty { return }
        while true {
            enum Step { case done, wait, gone }
            let step = state.withLock { state -> Step in
                if state.isAbandoned { return .gone }
                precondition(state.closed == nil, "a finished body was written to")
                guard state.unsent < limitBytes else {
                    precondition(!state.isWriterWaiting, "two threads write one body")
                    state.isWriterWaiting = true
                    return .wait
                }
                state.chunks.append(bytes)
                state.unsent += bytes.count
                Self.wakeReader(&state)
                return .done
            }
            switch step {
            case .done: return
            case .gone: throw HTTPError(code: .readerGone, message: "nobody reads this answer")
            case .wait: room.wait()
            }
        }
    }

    func close(isWhole: Bool) {
        state.withLock { state in
            if state.closed == nil { state.closed = isWhole }
            Self.wakeReader(&state)
        }
    }

    /// Nobody will read any more.
    func abandon() {
        state.withLock { state in
            state.isAbandoned = true
            state.chunks = []
            Self.wakeReader(&state)
            wakeWriter(&state)
        }
    }

    /// The request is over: the connection is not to be touched any more.
    func detach() {
        state.withLock { $0.waiting = nil }
        abandon()
    }

    /// Copies what is there, at most `buffer.count` bytes; suspends the connection otherwise.
    ///
    /// The record's deadline is for the client; while the writer is awaited it does not run.
    @unsafe func read(
        into buffer: UnsafeMutableRawBufferPointer,
        from connection: ConnectionHandle,
        whileWaiting record: ConnectionRecord
    ) -> Reading {
        state.withLock { state in
            if state.isAbandoned { return .failed }
            guard state.unsent > 0 else {
                guard let closed = state.closed else {
                    state.waiting = connection
                    record.extend(until: .max)
                    connection.suspend()
                    return .suspended
                }
                return closed ? .finished : .failed
            }
            // A writer that has given up wants the client to see that at once.
            if state.closed == false { return .failed }
            var count = 0
            while count < buffer.count, let chunk = state.chunks.first {
                let part = chunk[state.offset...].prefix(buffer.count - count)
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
                    .copyBytes(from: part)
                count += part.count
                state.offset += part.count
                if state.offset == chunk.count {
                    state.chunks.removeFirst()
                    state.offset = 0
                }
            }
            state.unsent -= count
            if state.unsent < limitBytes { wakeWriter(&state) }
            return .bytes(count)
        }
    }

    private static func wakeReader(_ state: inout State) {
        state.waiting?.resume()
        state.waiting = nil
    }

    private func wakeWriter(_ state: inout State) {
        if state.isWriterWaiting {
            state.isWriterWaiting = false
            room.signal()
        }
    }
}
