internal import Synchronization

/// What a server has done and is doing, for metrics.
public struct ServerStatistics: Hashable, Sendable {
    /// Connections that are open.
    public var connectionsOpen = 0
    /// Connections that were taken since the start.
    public var connectionsAccepted = 0
    /// Requests whose headers are whole and which are not over.
    public var requestsInFlight = 0
    /// Of these, how many wait for a later answer.
    public var requestsSuspended = 0
    /// Answered requests by the first digit of their status, 2 to 5.
    public var requestsByClass: [Int: Int] = [:]
    /// Requests whose client went away before an answer.
    public var requestsUnanswered = 0
    /// What the server itself refused, by reason; reasons that never occurred are left out.
    public var refusals: [Refusal: Int] = [:]
    /// Bytes of bodies that were sent.
    public var bodyBytesSent = 0
}

/// One finished request, for the access log and the durations' histogram.
///
/// It never holds the path, the query or the body: those may name customers.
public struct AccessRecord: Hashable, Sendable {
    /// The request's id.
    public var requestID: String
    /// The method.
    public var method: HTTPMethod
    /// The route's template; nil where no route was found.
    public var route: String?
    /// The status; nil where the client had gone before an answer.
    public var status: Int?
    /// Whether the answer was sent to its end, as far as the server can tell.
    public var isComplete: Bool
    /// Nanoseconds from the request line to the end of the answer.
    public var durationNanoseconds: UInt64
    /// Bytes of the request's body.
    public var bytesReceived: Int
    /// Bytes of the answer's body.
    public var bytesSent: Int
    /// The other end of the connection.
    public var peer: IPAddress
    /// Why the server itself refused the request, where it did.
    public var refusal: Refusal?
}

/// The counters behind `ServerStatistics`.
final class ServerCounters: Sendable {
    private let totals = Mutex(ServerStatistics())

    /// What is counted here; the table and the gate add what they know.
    var snapshot: ServerStatistics { totals.withLock { $0 } }

    func count(_ refusal: Refusal) {
        totals.withLock { $0.refusals[refusal, default: 0] += 1 }
    }

    func countConnection() {
        totals.withLock { $0.connectionsAccepted += 1 }
    }

    func addSuspended(_ change: Int) {
        totals.withLock { $0.requestsSuspended += change }
    }

    func count(_ record: AccessRecord) {
        totals.withLock { totals in
            if let status = record.status {
                totals.requestsByClass[status / 100, default: 0] += 1
            } else {
                totals.requestsUnanswered += 1
            }
            if let refusal = record.refusal { totals.refusals[refusal, default: 0] += 1 }
            totals.bodyBytesSent += record.bytesSent
        }
    }
}
