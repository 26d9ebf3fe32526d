internal import Synchronization

/// An answer that is still to come.
///
/// A handler makes one, hands it to whoever will know the answer, and returns `.later` with it. It
/// is completed once, by whichever comes first; the others are told so. Where the last reference
/// goes away without an answer the client gets 500, so a forgotten request cannot hang. A client
/// that has gone away in the meantime does no harm, and is not noticed.
public final class PendingResponse: Sendable {
    let slot: AnswerSlot

    /// Makes one.
    ///
    /// - Parameter whenStopping: what is answered at once when the server begins to stop, for
    ///   requests that only wait for news. Without it the server waits for the answer, which is
    ///   right for work that has begun.
    public init(whenStopping: HTTPResponse? = nil) {
        slot = AnswerSlot(whenStopping: whenStopping)
    }

    deinit {
        _ = slot.complete(Refusal.forgotten.response())
    }

    /// Gives the answer.
    ///
    /// - Returns: false where it had been answered before, and this answer is dropped.
    @discardableResult
    public func complete(_ response: HTTPResponse) -> Bool {
        slot.complete(response)
    }
}

/// The place where the answer of one request is put by one thread and taken by another.
final class AnswerSlot: Sendable {
    private struct State: Sendable {
        var isDecided = false
        var response: HTTPResponse?
        var waiting: ConnectionHandle?
        var hasEnded = false
    }

    /// What is answered when the server begins to stop.
    let whenStopping: HTTPResponse?

    private let state = Mutex(State())

    init(whenStopping: HTTPResponse?) {
        self.whenStopping = whenStopping
    }

    func complete(_ response: HTTPResponse) -> Bool {
        state.withLock { state in
            guard !state.isDecided else { return false }
            state.isDecided = true
            // Nobody is there to take it: the bytes of a stream are let go with it.
            guard !state.hasEnded else { return true }
            state.response = response
            // Under the lock: once it is let go the connection may be served, end, and be freed.
            state.waiting?.resume()
            state.waiting = nil
            return true
        }
    }

    /// The answer if it is there; otherwise the connection is suspended until it is.
    func takeOrSuspend(_ connection: ConnectionHandle) -> HTTPResponse? {
        state.withLock { state in
            if let response = state.response.take() { return response }
            state.waiting = connection
            connection.suspend()
            return nil
        }
    }

    /// The request is over: no later answer may touch its connection.
    func end() {
        let dropped = state.withLock { state in
            state.hasEnded = true
            state.waiting = nil
            return state.response.take()
        }
        // Outside of the lock, since a stream's end may run code.
        _ = dropped
    }
}
