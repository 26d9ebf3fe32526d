internal import AppStoreSimulator
internal import EventLog
internal import LedgerService
internal import Postgres

/// Deliveries under load while everything fails, held to the sender's own books afterwards.
///
/// PostgreSQL is a private cluster with `fsync` on, the service the built program in processes of
/// its own, the App Store this process: it knows what it sent and what was acknowledged.
public final class Chaos {
    let options: Options
    let say: (String) -> Void
    let server: ChaosServer
    let authority: TestCertificateAuthority
    let book = ChaosBook()
    let probe: ChaosProbe
    let services: ChaosServices
    let load: ChaosLoad
    let faults: ChaosFaults
    let isOver = Flag()
    /// The flood's notifications, once they are signed.
    var floodMessages: [(number: Int, message: [UInt8])] = []
    var report = Report()

    /// How long the last notifications may take to be acknowledged and folded.
    private static let settleSeconds = 240

    /// Runs a scenario from an empty cluster to the last check.
    ///
    /// - Parameters:
    ///   - options: what to do, and how long.
    ///   - say: told what goes on.
    /// - Returns: what happened, and what promise was broken.
    /// - Throws: what keeps it from going on.
    public static func run(
        _ options: Options,
        say: @escaping (String) -> Void
    ) throws -> Report {
        let chaos = try Chaos(options, say: say)
        defer {
            chaos.services.killAll()
            try? chaos.server.stop()
        }
        do {
            try chaos.disturb()
            try chaos.settle()
            try chaos.audit()
        } catch {
            chaos.report.violations.append("it could not go on: \(error)")
        }
        chaos.tell()
        if options.keepsFolder || !chaos.report.violations.isEmpty {
            try? FileSystem.write("", to: "\(chaos.server.folder)/keep")
            chaos.report.lines.append("kept: \(chaos.server.folder)")
        }
        return chaos.report
    }

    private init(_ options: Options, say: @escaping (String) -> Void) throws {
        self.options = options
        self.say = say
        let isClock = options.scenario == .clock
        let library = isClock ? try Self.fakeTimeLibrary() : ""
        say("making a PostgreSQL cluster")
        let stepsServer = isClock && options.stepsServerClock
        let server = try ChaosServer { folder in
            stepsServer ? Self.fakedClock(folder, library) : []
        }
        self.server = server
        server.watch()
        let folder = server.folder
        let authority = ChaosSource.authority(seed: options.seed, until: ChaosSource.now())
        self.authority = authority
        try FileSystem.write(authority.rootPEM, to: "\(folder)/root.pem")
        if isClock { try FileSystem.write("+0\n", to: "\(folder)/clock") }
        try Self.prepare(server, program: options.program)

        var environment = [
            "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "TZ=UTC",
            "DATABASE_URL=\(server.conninfo(user: ChaosServer.login))",
        ]
        if isClock { environment += Self.fakedClock(folder, library) }
        let services = ChaosServices(
            count: options.instances,
            words: [options.program, "serve"] + Self.acceptance,
            environment: environment,
            folder: folder
        )
        self.services = services
        let probe = ChaosProbe { try server.connect() }
        self.probe = probe
        load = ChaosLoad(
            book: book,
            seed: options.seed,
            portCount: options.instances,
            ports: { services.port($0) },
            acknowledged: { stream, position in probe.add(stream, at: position) }
        )
        faults = ChaosFaults(
            services: services,
            server: server,
            load: load,
            seed: options.seed,
            stopsServer: options.scenario != .snapshot,
            clockFile: isClock ? "\(folder)/clock" : nil
        )
    }

    /// What the service is to trust, in the folder of the run.
    static let acceptance = ["--root", "root.pem", "--accept-bundle", "com.example.subledger"]

    private static func prepare(_ server: ChaosServer, program: String) throws {
        let name = ChaosServer.database
        let maintenance = try Connection(server.conninfo(database: "postgres"))
        try maintenance.execute("create database \(name) template template0")
        let connection = try server.connect()
        try Migrator(connection, extra: ReadModels.migrations).migrate()
        // The service logs in as somebody who may serve and nothing else.
        let login = try ChildProcess.run(
            [program, "migrate", "--print-login", ChaosServer.login],
            environment: ["PATH=/usr/bin:/bin", "DATABASE_URL=\(server.conninfo())"]
        )
        guard login.ending == .exited(0) else {
            throw ChaosError("migrate --print-login failed: \(login.output)")
        }
        try connection.execute(login.output)
    }

    private static func fakedClock(_ folder: String, _ library: String) -> [String] {
        [
            "LD_PRELOAD=\(library)", "FAKETIME_TIMESTAMP_FILE=\(folder)/clock",
            "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1",
            // Else it ends waits by the other clock at once.
            "FAKETIME_FORCE_MONOTONIC_FIX=0",
        ]
    }

    private static func fakeTimeLibrary() throws -> String {
        let places = [
            "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/local/lib",
        ]
        for place in places {
            let path = "\(place)/faketime/libfaketimeMT.so.1"
            if FileSystem.exists(path) { return path }
        }
        throw ChaosError("the scenario “clock” needs libfaketime: apt-get install faketime")
    }

    // MARK: - The load and what disturbs it

    private func disturb() throws {
        for number in 0..<services.count { try services.start(number) }
        say("the load begins: \(options.perSecond) a second for \(options.seconds) s")
        let end = Clock.seconds() + Double(options.seconds)
        if options.scenario == .sandbox { try measureFlood(until: end) }
        let isOver = isOver
        let source = ChaosSource(
            seed: options.seed,
            authority: authority,
            freshPercent: options.scenario == .clock ? 20 : 0
        )
        load.send(by: options.senders)
        load.produce(source, perSecond: options.perSecond) { isOver.isSet }
        defer { isOver.set() }
        switch options.scenario {
        case .kills, .clock:
            try measureQuietly(share: 0.1, until: end)
            try faults.run(until: end, pauses: pauses, say: say)
        case .snapshot:
            try holdSnapshot(until: end)
        case .sandbox:
            let services = services
            let flood = startFlood { services.port($0 % services.count) }
            defer { flood.stop() }
            try faults.run(until: end, pauses: pauses, say: say)
        case .importing:
            try importMeanwhile(until: end)
        }
        try faults.mendClock()
    }

    /// How long all is well between two faults, in ms.
    var pauses: ClosedRange<Int> {
        min(500, options.seconds * 20)...min(8000, options.seconds * 100)
    }

    /// Lets all be well for a while, to see how long things take.
    func measureQuietly(
        share: Double,
        of phase: String = "without faults",
        until end: Double
    ) throws {
        let quiet = min(60, Double(options.seconds) * share)
        // What is slow only the first time is not measured.
        Clock.sleep(milliseconds: min(3000, Int(quiet * 300)))
        setPhase(phase)
        Clock.sleep(milliseconds: Int(quiet * 1000))
        setPhase(nil)
        _ = end
    }

    func setPhase(_ phase: String?) {
        load.times.setPhase(phase)
        probe.times.setPhase(phase)
    }

    // MARK: - The end

    private func settle() throws {
        say("waiting until all is acknowledged and folded")
        if !load.wait(seconds: Self.settleSeconds) {
            report.violations.append(
                "\(load.queue.open) notifications were not acknowledged in "
                    + "\(Self.settleSeconds) s after the last fault"
            )
        }
        let connection = try server.connect()
        let end = Clock.seconds() + Double(Self.settleSeconds)
        while Clock.seconds() < end {
            let rows = try connection.query("select count(*) from ledger.mark")
            if rows.int(0, 0) == 0 { break }
            Clock.sleep(milliseconds: 50)
        }
        probe.stop()
        for number in 0..<services.count {
            let ending = services.terminate(number)
            if ending != .exited(0) {
                report.violations.append("service \(number) did not end well: \(ending)")
            }
        }
    }

    private func audit() throws {
        say("auditing")
        report.violations += load.sightings.violations + faults.violations
        var audit = ChaosAudit(book: book.entries, heads: faults.heads)
        let connection = try server.connect()
        try audit.checkEvents(connection)
        try audit.checkChain(connection)
        try audit.checkQueues(connection)
        // Here a made-up root signs for Production, which no program but this one believes.
        if options.scenario != .sandbox {
            let verified = try command("audit", "verify")
            if verified.ending != .exited(0) {
                report.violations.append("audit verify: \(verified.output)")
            }
        }
        let live = try ChaosAudit.liveRows(connection)
        let rebuilt = try command("rebuild")
        if rebuilt.ending != .exited(0) {
            report.violations.append("rebuild: \(rebuilt.output)")
        }
        audit.compare(live: live, rebuilt: try ChaosAudit.liveRows(connection))
        report.violations += audit.violations
        report.lines.append(
            "\(audit.events) events stored, \(live.count) rows of subscriptions compared with a "
                + "fresh rebuild"
        )
        checkThatItWasChaos()
    }

    /// A run in which nothing went wrong shows nothing.
    private func checkThatItWasChaos() {
        let counts = faults.counts
        let entries = book.entries
        let unanswered = entries.count { $0.unanswered > 0 }
        let repeated = entries.count { $0.unanswered > 0 && $0.firstOutcome == .duplicate }
        report.lines.append(
            "\(entries.count) notifications in \(entries.reduce(0) { $0 + $1.sends }) attempts; "
                + "\(entries.reduce(0) { $0 + $1.acknowledgements }) acknowledgements, "
                + "\(unanswered) notifications with an answer that got lost, \(repeated) of which "
                + "were stored all the same and acknowledged as duplicates"
        )
        report.lines.append(
            "service killed \(counts.serviceKills) times, PostgreSQL stopped "
                + "\(counts.serverStops) times, both \(counts.both) times; service frozen "
                + "\(counts.freezes) times, clock stepped "
                + "\(counts.clockSteps) times; \(faults.heads.count) heads kept"
        )
        func demand(_ isSo: Bool, _ what: String) {
            if !isSo { report.violations.append("it showed nothing: \(what)") }
        }
        let minutes = options.seconds / 60
        demand(counts.serviceKills + counts.both >= max(1, minutes), "too few services were killed")
        if options.scenario != .snapshot {
            demand(counts.serverStops + counts.both >= max(1, minutes), "too few servers stopped")
        }
        if options.scenario == .clock {
            demand(counts.clockSteps >= max(2, minutes), "the clock was hardly stepped")
        }
        if minutes >= 1 { demand(unanswered > 0, "no answer got lost") }
        if minutes >= 5 { demand(repeated > 0, "no stored notification was sent again") }
    }

    /// Runs a command of the program on the run's database.
    func command(_ words: String...) throws -> (ending: ChildProcess.Ending, output: String) {
        try ChildProcess.run(
            [options.program] + words,
            environment: [
                "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "DATABASE_URL=\(server.conninfo())",
            ]
        )
    }

    private func tell() {
        let sightings = load.sightings
        let refusals = sightings.refusals.sorted { $0.key < $1.key }.map {
            "\($0.value) × \($0.key)"
        }
        report.lines.append(
            "refused meanwhile: \(refusals.joined(separator: ", ")); nobody there: "
                + "\(sightings.unsent)"
        )
        for (name, times) in [("delivery", load.times), ("visible", probe.times)] {
            for (phase, sorted) in times.all where !sorted.isEmpty {
                func quantile(_ share: Double) -> String {
                    let value = sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
                    return "\((value * 10_000).rounded() / 10)"
                }
                report.lines.append(
                    "\(name), \(phase): p50 \(quantile(0.5)) ms, p99 \(quantile(0.99)) ms, "
                        + "most \(quantile(1)) ms, of \(sorted.count)"
                )
            }
        }
    }
}
