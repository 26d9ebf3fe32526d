internal import Crypto
internal import Dispatch
internal import EventLog
internal import Glibc
internal import Ledger
internal import LedgerService
public import Postgres
internal import Synchronization

/// Kills rebuilds (`kill -9`) at random moments, while others read and events keep coming.
///
/// Whoever reads sees one whole generation at any time, never an empty or a mixed answer; the next
/// rebuild begins clean, and in the end the live rows are those that the events give.
public struct RebuildKills: Sendable {
    /// What is done.
    public struct Options: Hashable, Sendable {
        /// How many rebuilds are killed.
        public var kills: Int
        /// How many subscriptions the log has at the beginning, with ten events each.
        public var subscriptions: Int
        /// Equal seeds draw equal moments.
        public var seed: UInt64
        /// The file of the program.
        public var program: String
        /// How the program reaches the database.
        public var conninfo: String
        /// Where the program runs.
        public var folder: String

        /// Kills so many rebuilds of a program.
        public init(kills: Int, seed: UInt64, program: String, conninfo: String, folder: String) {
            self.kills = kills
            subscriptions = 2000
            self.seed = seed
            self.program = program
            self.conninfo = conninfo
            self.folder = folder
        }
    }

    /// What was seen.
    public struct Report: Hashable, Sendable {
        /// How many rebuilds were killed before their end.
        public var killed = 0
        /// How many were quicker.
        public var finished = 0
        /// How many answers were held to what they must be.
        public var answers = 0
        /// How many look-ups of one subscription were timed.
        public var lookUps = 0
        /// The longest of them, in milliseconds.
        public var stallMilliseconds = 0.0
        /// The promises that were broken.
        public var violations: [String] = []
    }

    private struct State {
        var report = Report()
        var isOver = false
        var expected = ""
        var grown: Int64 = 0
    }

    /// What all threads know.
    private final class Book: Sendable {
        private let state = Mutex(State())

        func withLock<Value>(_ body: (inout State) -> Value) -> Value {
            state.withLock { body(&$0) }
        }
    }

    private let options: Options
    private let connect: @Sendable () throws -> Connection

    /// Prepares a run in a database of its own, which has the schema and no events.
    public init(_ options: Options, connect: @escaping @Sendable () throws -> Connection) {
        self.options = options
        self.connect = connect
    }

    /// Runs to the end.
    public func run(progress: (String) -> Void = { _ in }) throws -> Report {
        let connection = try connect()
        progress("making \(options.subscriptions * 10) events")
        try SyntheticLog.fill(connection, subscriptions: options.subscriptions)
        let start = ContinuousClock.now
        guard try rebuild(after: nil) == .exited(0) else {
            throw ChaosError("the first rebuild failed")
        }
        let usual = (ContinuousClock.now - start).components
        let state = Book()
        let first = try Self.answer(connection)
        state.withLock { $0.expected = first.fixed }
        let works: [@Sendable (Book) throws -> Void] = [
            grow, readAnswers, readOneSnapshot, lookUp,
        ]
        let group = DispatchGroup()
        for (number, work) in works.enumerated() {
            DispatchQueue(label: "kills.\(number)").async(group: group) {
                do { try work(state) } catch {
                    state.withLock { $0.report.violations.append("somebody failed: \(error)") }
                }
            }
        }
        // Whoever is still there must end, however this does.
        defer {
            state.withLock { $0.isOver = true }
            group.wait()
        }
        var random = SeededMoments(seed: options.seed)
        let milliseconds = Double(usual.seconds) * 1000 + Double(usual.attoseconds) / 1e15
        for number in 1...options.kills {
            let moment = random.next(below: milliseconds * 1.05)
            let ending = try rebuild(after: Int(moment * 1000))
            state.withLock {
                if ending == .exited(0) {
                    $0.report.finished += 1
                } else {
                    $0.report.killed += 1
                }
            }
            if number % 20 == 0 {
                progress("\(number) of \(options.kills) rebuilds")
                try check(state, connection)
            }
        }
        state.withLock { $0.isOver = true }
        group.wait()
        try check(state, connection)
        return state.withLock { $0.report }
    }

    // MARK: - The rebuilds

    private func rebuild(after microseconds: Int?) throws -> ChildProcess.Ending {
        let process = try ChildProcess.spawn(
            [options.program, "rebuild", "--database", options.conninfo],
            environment: nil,
            folder: options.folder
        )
        if let microseconds {
            usleep(UInt32(microseconds))
            kill(process, SIGKILL)
        }
        return ChildProcess.wait(for: process)
    }

    /// A rebuild that nobody kills succeeds, leaves nothing behind, and its rows are right.
    private func check(_ state: Book, _ connection: Connection) throws {
        var broken: [String] = []
        if try rebuild(after: nil) != .exited(0) { broken.append("the next rebuild failed") }
        // A server session of a killed one may still hold what it had for a moment.
        var rest: Int64 = -1
        for _ in 0..<100 where rest != 0 {
            try connection.execute("select pg_sleep(0.1)")
            rest =
                try connection.query(
                    "select count(*) from read_model.generation where state = 'building'"
                ).int(0, 0) ?? -1
        }
        if rest != 0 { broken.append("\(rest) generations are left half-made") }
        _ = try Projector(connect()).project()
        let found = Mutex(0)
        let report = try Verification(connect: connect).run { _ in found.withLock { $0 += 1 } }
        if report.different > 0 { broken.append("\(report.different) subscriptions differ") }
        state.withLock { $0.report.violations += broken }
    }

    // MARK: - Who is there meanwhile

    /// Appends first purchases of ever new subscriptions, so that there is something to catch up.
    @Sendable private func grow(_ state: Book) throws {
        let appender = try Appender(connect())
        while !state.withLock({ $0.isOver }) {
            let number = state.withLock { state in
                state.grown += 1
                return state.grown
            }
            let received = Array("grown \(number)".utf8)
            let at = Timestamp(milliseconds: 1_735_689_600_000 + number * 1000)
            var fact = Fact(kind: .notification, provenance: .jws, factAt: at)
            fact.notificationType = .subscribed
            fact.signedAt = at
            var transaction = TransactionFact(
                transactionID: AppleID(UInt64(9_000_000_000 + number)),
                signedDate: at,
                digest: UInt64(number)
            )
            transaction.productType = .autoRenewable
            transaction.purchaseDate = at
            transaction.originalPurchaseDate = at
            transaction.expiresDate = Timestamp(milliseconds: at.milliseconds + 2_592_000_000)
            transaction.productID = "plan.grown"
            fact.transaction = transaction
            _ = try appender.append([
                NewEvent(
                    app: AppKey(bundleID: "com.example.benchmark", environment: .production),
                    stream: "9\(number)",
                    eventKey: "n:grown-\(number)",
                    kind: .notification,
                    notificationType: "SUBSCRIBED",
                    signedAt: at,
                    received: received,
                    form: .raw,
                    contentDigest: SHA256.digest(received),
                    fact: fact
                )
            ])
            usleep(20_000)
        }
    }

    /// What the views say: of the subscriptions that do not change, of how many others, and
    /// whether every subscription has its timeline.
    private static func answer(
        _ connection: Connection
    ) throws -> (fixed: String, grown: Int64, torn: Int64) {
        let rows = try connection.query(
            """
            select
                md5(string_agg(state || valid_from || valid_until || entitled, ','
                    order by original_transaction_id, valid_from)
                    filter (where bundle_id is not null and product_id <> 'plan.grown')),
                count(distinct original_transaction_id) filter (where product_id = 'plan.grown'),
                (select count(*) from read_model.subscription_live)
                    - count(distinct original_transaction_id)
            from read_model.entitlement_all
            """
        )
        return (rows.text(0, 0) ?? "nothing", rows.int(0, 1) ?? 0, rows.int(0, 2) ?? -1)
    }

    @Sendable private func readAnswers(_ state: Book) throws {
        let connection = try connect()
        var grown: Int64 = 0
        while !state.withLock({ $0.isOver }) {
            let answer = try Self.answer(connection)
            state.withLock { state in
                state.report.answers += 1
                if answer.fixed != state.expected {
                    state.report.violations.append("an answer was \(answer.fixed)")
                }
                if answer.torn != 0 { state.report.violations.append("a generation was torn") }
                if answer.grown < grown {
                    state.report.violations.append("a subscription was lost")
                }
            }
            grown = answer.grown
        }
    }

    /// In one transaction over many rebuilds nothing changes, and nothing is missing.
    @Sendable private func readOneSnapshot(_ state: Book) throws {
        let connection = try connect()
        while !state.withLock({ $0.isOver }) {
            try connection.transaction("begin isolation level repeatable read read only") {
                connection in
                let first = try Self.answer(connection)
                for _ in 0..<10 where !state.withLock({ $0.isOver }) {
                    usleep(200_000)
                    let again = try Self.answer(connection)
                    state.withLock { state in
                        state.report.answers += 1
                        if first != again || again.fixed != state.expected {
                            state.report.violations.append("a snapshot changed")
                        }
                    }
                }
            }
        }
    }

    @Sendable private func lookUp(_ state: Book) throws {
        let connection = try connect()
        var number: Int64 = 0
        while !state.withLock({ $0.isOver }) {
            number = number % Int64(options.subscriptions) + 1
            let start = ContinuousClock.now
            let rows = try connection.query(
                prepared: """
                    select state from read_model.entitlement_all
                    where original_transaction_id = $1 and valid_until = 'infinity'
                    """,
                [.text("\(1_000_000_000 + number)")]
            )
            let took = (ContinuousClock.now - start).components
            let milliseconds = Double(took.seconds) * 1000 + Double(took.attoseconds) / 1e15
            state.withLock { state in
                state.report.lookUps += 1
                state.report.stallMilliseconds = max(state.report.stallMilliseconds, milliseconds)
                if rows.count != 1 { state.report.violations.append("a look-up was empty") }
            }
            usleep(500)
        }
    }
}

/// Moments that are the same for the same seed (SplitMix64).
private struct SeededMoments {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next(below bound: Double) -> Double {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        z ^= z >> 31
        return Double(z >> 11) / Double(UInt64(1) << 53) * bound
    }
}
