internal import EventLog
internal import Ledger
internal import Postgres

/// Settles what is open about extensions while the program serves.
///
/// A request whose answer was lost is settled as `subledger extend resolve` does it: the
/// subscription is read first, and the request sent once more at most. A mass extension is asked
/// about until Apple is done with it. Each is looked at again after ever longer rests.
final class ExtensionSettler {
    /// What it came to.
    struct Outcome: Hashable {
        /// Requests that have an outcome now.
        var settled = 0
        /// Questions about mass extensions that were answered.
        var polled = 0
    }

    /// The rest after the first look; it doubles.
    static let restFirst = Milliseconds.minutes(1)
    /// The longest rest.
    static let restLongest = Milliseconds.hours(1)
    /// How long a request may be under way: longer than any answer is waited for.
    static let underWay = Milliseconds.minutes(2)
    /// After that a mass extension that never became complete is asked about no more.
    static let massReach = Milliseconds.days(14)

    private struct Wait {
        var next: Timestamp
        var rest: Milliseconds
    }

    private let gateway: any ExtensionGateway
    private let settings: ExtensionSettings
    private let serviceIdentity: String
    private let read: () throws -> Connection
    private let connect: () throws -> Connection
    private let log: ServiceLog
    private let now: @Sendable () -> Timestamp
    private var session: Connection?
    private var waits: [UniqueID: Wait] = [:]

    init(
        gateway: any ExtensionGateway,
        settings: ExtensionSettings,
        serviceIdentity: String,
        read: @escaping () throws -> Connection,
        connect: @escaping () throws -> Connection,
        log: ServiceLog,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.gateway = gateway
        self.settings = settings
        self.serviceIdentity = serviceIdentity
        self.read = read
        self.connect = connect
        self.log = log
        self.now = now
    }

    /// Looks at what is due.
    ///
    /// - Parameter mayGoOn: asked before each; false where the program stops or it is another's turn.
    /// - Returns: what it came to.
    /// - Throws: what the database throws; what Apple refuses is looked at again later.
    func run(mayGoOn: () throws -> Bool) throws -> Outcome {
        let reading = try reading()
        let single = try open(reading, Self.unanswered)
        let mass = try open(reading, Self.incomplete)
        let all = Set(single).union(mass)
        waits = waits.filter { all.contains($0.key) }
        let due = all.filter { waits[$0].map { $0.next <= now() } ?? true }
        var outcome = Outcome()
        guard !due.isEmpty else { return outcome }
        let extensions = try Extensions(
            reading: reading,
            appending: connect(),
            gateway: gateway,
            settings: settings,
            now: now
        )
        extensions.serviceIdentity = serviceIdentity
        for request in single + mass where due.contains(request) {
            guard try mayGoOn() else { return outcome }
            let rest = waits[request].map { Milliseconds(rawValue: $0.rest.rawValue * 2) }
            let next = min(rest ?? Self.restFirst, Self.restLongest)
            waits[request] = Wait(next: now().adding(next), rest: next)
            do {
                if mass.contains(request) {
                    if try poll(request, extensions) { outcome.polled += 1 }
                } else if try settle(request, extensions) {
                    outcome.settled += 1
                }
            } catch let problem as ExtensionProblem {
                note(problem, request)
            } catch let error as EventLogError {
                // Somebody else settles it at the same time, or it has news: later again.
                guard error.code == .stale || error.code == .temporary else { throw error }
            }
        }
        return outcome
    }

    private func settle(_ request: UniqueID, _ extensions: Extensions) throws -> Bool {
        let result = try extensions.resolve(request, by: .service)
        guard result.outcome != .unknown else { return false }
        log.write(.info, "extension_settled") { json in
            json.member("request_identifier", request.description)
            json.member("outcome", result.outcome.rawValue)
            json.member("attempts", Int64(result.attempts))
        }
        return true
    }

    private func poll(_ request: UniqueID, _ extensions: Extensions) throws -> Bool {
        let standing = try extensions.massStatus(request)
        guard standing.isKnown else { return false }
        if standing.isComplete {
            log.write(.info, "mass_extension_complete") { json in
                json.member("request_identifier", request.description)
                json.member("succeeded", standing.succeeded)
                json.member("failed", standing.failed)
            }
        }
        return true
    }

    private func note(_ problem: ExtensionProblem, _ request: UniqueID) {
        switch problem {
        case .tooEarly(let instant):
            waits[request]?.next = instant
            return
        case .needsDecision, .movedOtherwise: break
        default: return
        }
        log.write(.warning, "extension_needs_decision") { json in
            json.member("request_identifier", request.description)
            json.member("detail", problem.description)
        }
    }

    // MARK: - What is open

    private func reading() throws -> Connection {
        if let session, session.isAlive { return session }
        let opened = try read()
        session = opened
        return opened
    }

    private func open(_ connection: Connection, _ sql: String) throws -> [UniqueID] {
        let rows = try connection.query(
            sql,
            [
                .instant(milliseconds: now().milliseconds - Self.underWay.rawValue),
                .instant(milliseconds: now().milliseconds - Self.massReach.rawValue),
            ]
        )
        return (0..<rows.count).compactMap { rows.uuid($0, 0).map { UniqueID(bits: $0) } }
    }

    /// Requests for one subscription without an outcome, those that are just being sent left out.
    private static let unanswered = """
        select r.request_identifier from read_model.extension_record_live r
        where r.is_open and r.outcome = 'unknown' and r.scope = 'single'
            and (r.answered_at is not null or r.submitted_at < $1) and $2::timestamptz is not null
        order by r.at, r.request_identifier
        """

    /// Mass requests that Apple is not done with.
    private static let incomplete = """
        select m.request_identifier from read_model.mass_request m
        join read_model.extension_record_live r
            on r.stream = m.stream and r.app_id = m.app_id
            and r.request_identifier = m.request_identifier
        where not m.complete and m.submitted_at > $2
            and (m.outcome = 'accepted' or m.outcome = 'unknown' and r.is_open
                and (r.answered_at is not null or m.submitted_at < $1))
        order by m.at, m.request_identifier
        """
}
