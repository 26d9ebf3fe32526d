internal import Postgres
internal import Synchronization

/// What goes wrong, by a plan that a seed draws.
final class ChaosFaults {
    /// How often each thing was done.
    struct Counts: Sendable {
        var serviceKills = 0
        var serverStops = 0
        var both = 0
        var freezes = 0
        var clockSteps = 0

        var total: Int { serviceKills + serverStops + both }
    }

    /// A head that was read before the server was stopped.
    struct KeptHead {
        var position: Int64
        var link: [UInt8]
    }

    private let services: ChaosServices
    private let server: ChaosServer
    private let load: ChaosLoad
    private var random: ChaosRandom
    /// Whether PostgreSQL is stopped too.
    private let stopsServer: Bool
    private let clockFile: String?
    private var nextStep = 0.0
    private var step = 0

    private(set) var counts = Counts()
    private(set) var heads: [KeptHead] = []
    private(set) var violations: [String] = []

    /// How long there may be no acknowledgement once all is up again.
    static let silenceMaxSeconds = 90.0

    init(
        services: ChaosServices,
        server: ChaosServer,
        load: ChaosLoad,
        seed: UInt64,
        stopsServer: Bool,
        clockFile: String?
    ) {
        self.services = services
        self.server = server
        self.load = load
        self.stopsServer = stopsServer
        self.clockFile = clockFile
        random = ChaosRandom(seed: seed, stream: 5)
    }

    /// Does one thing after the other until the time is over.
    ///
    /// - Parameters:
    ///   - end: when to stop, in seconds.
    ///   - pauses: how long all is well between two faults, in ms.
    ///   - say: told of each fault.
    /// - Throws: what keeps a server or a service from starting again.
    func run(until end: Double, pauses: ClosedRange<Int>, say: (String) -> Void) throws {
        // One of each kind first, however long it takes, so that no run shows nothing.
        var first = counts.total == 0 ? [99, 0, 50][...] : []
        while Clock.seconds() < end || !first.isEmpty {
            let pause = random.between(pauses.lowerBound, pauses.upperBound)
            try rest(until: Clock.seconds() + Double(pause) / 1000)
            guard Clock.seconds() < end || !first.isEmpty else { break }
            let lot = first.popFirst() ?? random.below(100)
            let victim = random.below(services.count)
            let down = random.between(0, 1500)
            keepHead()
            switch lot {
            case ..<40 where stopsServer:
                try server.stopImmediately()
                Clock.sleep(milliseconds: down)
                try server.start()
                counts.serverStops += 1
            case ..<60 where stopsServer:
                // In either order, so that each is also there while the other is not.
                let isServiceFirst = random.chance(50)
                if isServiceFirst { services.kill(victim) }
                try server.stopImmediately()
                if !isServiceFirst { services.kill(victim) }
                Clock.sleep(milliseconds: down)
                try server.start()
                try services.startWhenever(victim) { false }
                counts.both += 1
            case 60..<70:
                // Longer than a transaction may be idle, at times.
                services.freeze(victim, milliseconds: down * 9)
                counts.freezes += 1
            default:
                services.kill(victim)
                Clock.sleep(milliseconds: down)
                try services.startWhenever(victim) { false }
                counts.serviceKills += 1
            }
            try awaitProgress()
            say(
                "\(counts.serviceKills) kills, \(counts.serverStops) stops, \(counts.both) both; "
                    + "\(load.book.acknowledged) acknowledged of \(load.book.count)"
            )
        }
    }

    /// Steps the clock back to what it is.
    func mendClock() throws {
        if let clockFile { try FileSystem.write("+0\n", to: clockFile) }
    }

    private func rest(until end: Double) throws {
        while Clock.seconds() < end {
            for number in services.lost {
                violations.append(
                    "service \(number) ended by itself; see \(services.logFile(number))"
                )
                services.kill(number)
                try services.startWhenever(number) { false }
            }
            try stepClock()
            Clock.sleep(milliseconds: 20)
        }
    }

    /// An hour ahead, back, an hour behind, back, and so on.
    private func stepClock() throws {
        guard let clockFile, Clock.seconds() >= nextStep else { return }
        let steps = ["+0", "+3600", "-3600", "+0", "-3600", "+3600"]
        try FileSystem.write("\(steps[step % steps.count])\n", to: clockFile)
        if step > 0 { counts.clockSteps += 1 }
        step += 1
        nextStep = Clock.seconds() + Double(random.between(6, 20))
    }

    private func keepHead() {
        guard let connection = try? server.connect(),
            let rows = try? connection.query("select position, link from ledger.head"),
            let position = rows.int(0, 0), let link = rows.bytes(0, 1)
        else { return }
        heads.append(KeptHead(position: position, link: link))
    }

    /// Waits for an acknowledgement: what was down is up again by itself.
    private func awaitProgress() throws {
        let start = Clock.seconds()
        while load.sightings.lastAcknowledged < start {
            guard load.queue.open > 0 || Clock.seconds() < start + 5 else { return }
            if Clock.seconds() > start + Self.silenceMaxSeconds {
                violations.append(
                    "no acknowledgement for \(Int(Self.silenceMaxSeconds)) s after all was up"
                )
                return
            }
            try stepClock()
            Clock.sleep(milliseconds: 10)
        }
    }
}
