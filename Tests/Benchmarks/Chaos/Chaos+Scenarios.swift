internal import AppStore
internal import AppStoreSimulator
internal import Crypto
internal import Dispatch
internal import Glibc
internal import HTTP
internal import Ledger
internal import LedgerService
internal import Postgres
internal import Synchronization

/// What several threads look at and one sets.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isSet: Bool { value.load(ordering: .acquiring) }

    func set() { value.store(true, ordering: .releasing) }
}

extension Chaos {
    // MARK: - A snapshot that stays open

    /// Keeps a snapshot open while the load goes on: what changes meanwhile cannot be cleaned up.
    func holdSnapshot(until end: Double) throws {
        let holder = try server.connect()
        try holder.execute("begin isolation level repeatable read")
        let before = try holder.query("select count(*) from ledger.event").int(0, 0)
        let slices = 10
        let length = max(1, (end - Clock.seconds()) / Double(slices))
        for slice in 1...slices {
            setPhase("tenth \(slice)")
            let sliceEnd = min(end, Clock.seconds() + length)
            try faults.run(until: sliceEnd, pauses: 8000...20_000, say: say)
            while Clock.seconds() < sliceEnd { Clock.sleep(milliseconds: 20) }
        }
        setPhase(nil)
        let after = try holder.query("select count(*) from ledger.event").int(0, 0)
        if before != after { report.violations.append("the snapshot saw what came after it") }
        try tellBloat()
        try holder.execute("commit")
        for (what, times) in [("deliveries", load.times), ("read models", probe.times)] {
            guard let first = times.milliseconds(0.5, of: "tenth 1"),
                let last = times.milliseconds(0.5, of: "tenth \(slices)")
            else { continue }
            // Twice the time may be noise of the machine; what grows with age grows further.
            if last > 3 * first + 20 {
                report.violations.append(
                    "\(what) slow down under an old snapshot: p50 \(first) ms, then \(last) ms"
                )
            }
        }
    }

    private func tellBloat() throws {
        let connection = try server.connect()
        let rows = try connection.query(
            """
            select relname, n_live_tup, n_dead_tup, pg_relation_size(relid) / 8192
            from pg_stat_user_tables where schemaname in ('ledger', 'read_model')
            order by n_dead_tup desc limit 6
            """
        )
        for row in 0..<rows.count {
            report.lines.append(
                "\(rows.text(row, 0) ?? ""): \(rows.int(row, 1) ?? 0) live rows, "
                    + "\(rows.int(row, 2) ?? 0) dead, \(rows.int(row, 3) ?? 0) pages"
            )
        }
    }

    // MARK: - An import meanwhile

    func importMeanwhile(until end: Double) throws {
        try measureQuietly(share: 0.2, of: "without an import", until: end)
        let isOver = Flag()
        let done = DispatchGroup()
        let state = Mutex<(lines: Int, failures: [String])>((0, []))
        let source = Unchecked(
            ChaosSource(seed: options.seed, authority: authority, first: 40_000_000)
        )
        let (folder, book, program) = (server.folder, book, options.program)
        let environment = [
            "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "DATABASE_URL=\(server.conninfo())",
        ]
        DispatchQueue(label: "chaos.import").async(group: done) {
            while !isOver.isSet {
                let numbers = Self.writeFile("\(folder)/import.ndjson", from: source.value, book)
                // A file whose import broke off is simply read again.
                while true {
                    let words =
                        [program, "ingest", "\(folder)/import.ndjson", "--root"]
                        + ["\(folder)/root.pem", "--accept-bundle", "com.example.subledger"]
                    let run = try? ChildProcess.run(words, environment: environment)
                    if run?.ending == .exited(0) { break }
                    if run?.ending != .exited(3) {
                        let said = run?.output ?? ""
                        state.withLock { $0.failures.append("ingest failed: \(said)") }
                    }
                    Clock.sleep(milliseconds: 200)
                }
                let now = Clock.seconds()
                for number in numbers {
                    book.wasAcknowledged(number, as: .stored, position: nil, at: now)
                }
                state.withLock { $0.lines += numbers.count }
            }
        }
        try measureQuietly(share: 0.4, of: "during an import", until: end)
        try faults.run(until: end, pauses: pauses, say: say)
        isOver.set()
        done.wait()
        let (lines, failures) = state.withLock { $0 }
        report.violations += failures.prefix(3)
        report.lines.append("\(lines) lines imported meanwhile")
        if lines == 0 { report.violations.append("it showed nothing: no file was imported") }
        demand("during an import", mostMilliseconds: 200)
    }

    private static func writeFile(
        _ path: String,
        from source: ChaosSource,
        _ book: ChaosBook
    ) -> [Int] {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        defer { close(file) }
        var numbers: [Int] = []
        for _ in 0..<4000 {
            let (signed, uuid, _) = source.make()
            let number = book.add(key: "n:\(uuid)", digest: SHA256.digest(signed))
            book.willSend(number, at: Clock.seconds())
            numbers.append(number)
            let line = NoticeSigner.line(signed) + [0x0a]
            unsafe line.withUnsafeBytes { bytes in
                _ = unsafe write(file, bytes.baseAddress, bytes.count)
            }
        }
        return numbers
    }

    /// Says so where the deliveries of a phase took longer than they may.
    private func demand(_ phase: String, mostMilliseconds limit: Double) {
        guard let p99 = load.times.milliseconds(0.99, of: phase) else {
            report.violations.append("it showed nothing: too few deliveries \(phase)")
            return
        }
        if p99 > limit {
            report.lines.append("MISSED: p99 \(phase) is \(p99) ms, meant to be \(limit) ms")
        }
    }

    // MARK: - A flood for Sandbox

    /// How long Production waits, alone and in a flood.
    ///
    /// No option of the service lets a test authority vouch for Production, so for this part the
    /// service runs in this process.
    func measureFlood(until end: Double) throws {
        var anchors = TrustAnchors()
        try anchors.addVouchingForAll(authority.rootDER, name: "made up")
        let app = AcceptedApp(
            bundleID: "com.example.subledger",
            appAppleID: 1_234_567_890,
            environments: [.production, .sandbox]
        )
        let conninfo = server.conninfo(user: ChaosServer.login)
        let connect: @Sendable () throws -> Connection = { try Connection(conninfo) }
        let now: @Sendable () -> Timestamp = { Timestamp(milliseconds: ChaosSource.now()) }
        let service = try Service(
            options: Service.Options(http: HTTPServerConfiguration()),
            verifier: Verifier(anchors: anchors, apps: [app]),
            sessions: Service.Sessions(
                appender: connect,
                projector: connect,
                reader: connect,
                auditor: connect
            ),
            log: ServiceLog(descriptor: 2, now: now),
            now: now
        )
        let production = ChaosLoad(
            book: book,
            seed: options.seed,
            portCount: 1,
            ports: { _ in service.port },
            acknowledged: { _, _ in }
        )
        let isOver = Flag()
        let source = ChaosSource(
            seed: options.seed,
            authority: authority,
            environment: "Production",
            first: 60_000_000
        )
        production.send(by: options.senders)
        production.produce(source, perSecond: 100) { isOver.isSet }
        let seconds = min(120, max(4, Double(options.seconds) / 5))
        Clock.sleep(milliseconds: 2000)
        production.times.setPhase("Production alone")
        Clock.sleep(milliseconds: Int(seconds * 500))
        production.times.setPhase(nil)
        let flood = startFlood { _ in service.port }
        Clock.sleep(milliseconds: 3000)
        production.times.setPhase("Production in the flood")
        Clock.sleep(milliseconds: Int(seconds * 1000))
        production.times.setPhase(nil)
        flood.stop()
        isOver.set()
        if !production.wait(seconds: 120) {
            report.violations.append("Production notifications were not acknowledged")
        }
        service.stop(within: .seconds(20))
        report.violations += production.sightings.violations
        tellFlood(production.times, flood)
    }

    private func tellFlood(_ times: ChaosTimes, _ flood: ChaosFlood) {
        report.lines.append(
            "the flood: \(Int(flood.perSecond)) a second answered of \(options.floodPerSecond) tried"
        )
        for share in [0.5, 0.99] {
            guard let alone = times.milliseconds(share, of: "Production alone"),
                let flooded = times.milliseconds(share, of: "Production in the flood")
            else {
                report.violations.append("it showed nothing: too few Production deliveries")
                return
            }
            let ratio = (flooded / alone * 100).rounded() / 100
            report.lines.append(
                "Production p\(Int(share * 100)): \((alone * 10).rounded() / 10) ms alone, "
                    + "\((flooded * 10).rounded() / 10) ms in the flood, × \(ratio)"
            )
            if share == 0.99, ratio > 2 {
                report.lines.append("MISSED: Production's p99 is meant to double at most")
            }
        }
    }

    /// Starts a flood of Sandbox deliveries, most of which repeat earlier ones.
    func startFlood(_ port: @escaping @Sendable (Int) -> UInt16) -> ChaosFlood {
        let flood = ChaosFlood(perSecond: options.floodPerSecond, book: book)
        if floodMessages.isEmpty {
            say("signing the flood")
            let source = ChaosSource(seed: options.seed, authority: authority, first: 80_000_000)
            for _ in 0..<ChaosFlood.distinct {
                let (signed, uuid, _) = source.make()
                let number = book.add(key: "n:\(uuid)", digest: SHA256.digest(signed))
                floodMessages.append((number, ChaosSource.message(signed)))
            }
        }
        flood.start(floodMessages, port: port)
        return flood
    }
}

/// Deliveries over many connections at once, at a rate that nobody has to keep up with.
final class ChaosFlood: Sendable {
    /// How many different notifications it consists of; they come again and again.
    static let distinct = 6000
    private static let connections = 48

    private let rate: Double
    private let book: ChaosBook
    private let isOver = Flag()
    private let group = DispatchGroup()
    private let answered = Atomic<Int>(0)
    private let began = Clock.seconds()
    private let ended = Mutex(0.0)

    init(perSecond: Int, book: ChaosBook) {
        rate = Double(perSecond)
        self.book = book
    }

    /// Deliveries answered in a second.
    var perSecond: Double {
        let end = ended.withLock { $0 }
        return Double(answered.load(ordering: .relaxed)) / max(0.001, end - began)
    }

    func start(
        _ messages: [(number: Int, message: [UInt8])],
        port: @escaping @Sendable (Int) -> UInt16
    ) {
        for connection in 0..<Self.connections {
            DispatchQueue(label: "chaos.flood.\(connection)").async(group: group) { [self] in
                let line = ChaosLine()
                let pause = Double(Self.connections) / rate
                var due = Clock.seconds()
                var place = connection
                while !isOver.isSet {
                    let (number, message) = messages[place % messages.count]
                    book.willSend(number, at: Clock.seconds())
                    switch line.send(message, to: port(connection)) {
                    case .answered(200, let word, let position):
                        let outcome = ChaosBook.Outcome(rawValue: word) ?? .conflict
                        let now = Clock.seconds()
                        book.wasAcknowledged(number, as: outcome, position: position, at: now)
                        answered.add(1, ordering: .relaxed)
                        place += Self.connections
                    case .unanswered: book.wasNotAnswered(number)
                    case .unsent: Clock.sleep(milliseconds: 50)
                    case .answered: Clock.sleep(milliseconds: 5)
                    }
                    due = max(due + pause, Clock.seconds() - 1)
                    let ahead = due - Clock.seconds()
                    if ahead > 0.001 { Clock.sleep(milliseconds: Int(ahead * 1000)) }
                }
            }
        }
    }

    func stop() {
        isOver.set()
        group.wait()
        ended.withLock { $0 = Clock.seconds() }
    }
}
