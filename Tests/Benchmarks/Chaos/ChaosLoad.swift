internal import Crypto
internal import Dispatch
internal import Postgres
internal import Synchronization

/// The App Store: notifications that fall due one after the other, each sent until it is
/// acknowledged; some are sent twice, also at the same time.
final class ChaosLoad: Sendable {
    /// Percent of the notifications that are sent again after their acknowledgement.
    private static let againPercent = 15
    /// Percent that two senders send at the same time.
    private static let twicePercent = 10
    /// How many may wait before no more are made.
    private static let waitingMax = 3000

    /// What was seen while sending.
    struct Sightings: Sendable {
        /// Answers by status and reason, but those with 200.
        var refusals: [String: Int] = [:]
        /// Attempts that did not reach anybody.
        var unsent = 0
        /// Answers that can never be right.
        var violations: [String] = []
        /// When the last acknowledgement came, in seconds.
        var lastAcknowledged = 0.0
    }

    let book: ChaosBook
    let queue = ChaosQueue()
    /// From due to acknowledged.
    let times = ChaosTimes()
    private let ports: @Sendable (Int) -> UInt16
    private let portCount: Int
    private let acknowledged: @Sendable (String, Int64) -> Void
    private let seed: UInt64
    private let state = Mutex(Sightings())
    private let group = DispatchGroup()

    /// Prepares a load: `ports` says where a service of a number listens, and `acknowledged` is
    /// told of the stream and position of each first acknowledgement.
    init(
        book: ChaosBook,
        seed: UInt64,
        portCount: Int,
        ports: @escaping @Sendable (Int) -> UInt16,
        acknowledged: @escaping @Sendable (String, Int64) -> Void
    ) {
        self.book = book
        self.seed = seed
        self.portCount = portCount
        self.ports = ports
        self.acknowledged = acknowledged
    }

    var sightings: Sightings { state.withLock { $0 } }

    /// Starts to make notifications, so many a second, until told otherwise.
    func produce(
        _ source: sending ChaosSource,
        perSecond: Int,
        until isOver: @escaping @Sendable () -> Bool
    ) {
        let source = Unchecked(source)
        let seed = seed
        DispatchQueue(label: "chaos.source").async(group: group) { [self] in
            var random = ChaosRandom(seed: seed, stream: 77)
            let start = Clock.seconds()
            var made = 0.0
            while !isOver() {
                let ahead = start + made / Double(perSecond) - Clock.seconds()
                if ahead > 0 { Clock.sleep(milliseconds: max(1, Int(ahead * 1000))) }
                if queue.open > Self.waitingMax {
                    Clock.sleep(milliseconds: 5)
                    continue
                }
                made += 1
                let (signed, uuid, stream) = source.value.make()
                let number = book.add(key: "n:\(uuid)", digest: SHA256.digest(signed))
                let lot = random.below(100)
                let delivery = ChaosDelivery(
                    number: number,
                    message: ChaosSource.message(signed),
                    stream: stream,
                    comesAgain: lot < Self.againPercent,
                    due: Clock.seconds()
                )
                queue.add(delivery)
                if lot >= 100 - Self.twicePercent { queue.add(delivery) }
            }
            queue.close()
        }
    }

    /// Starts the senders.
    func send(by senders: Int) {
        DispatchQueue(label: "chaos.retries").async(group: group) { [self] in
            while !queue.isOver {
                queue.advance(to: Clock.seconds())
                Clock.sleep(milliseconds: 10)
            }
        }
        for sender in 0..<senders {
            DispatchQueue(label: "chaos.sender.\(sender)").async(group: group) { [self] in
                var random = ChaosRandom(seed: seed, stream: 1000 + UInt64(sender))
                let line = ChaosLine()
                var target = sender % portCount
                while !queue.isOver {
                    guard let delivery = queue.take() else { continue }
                    if !attempt(delivery, over: line, to: ports(target), &random) {
                        target = (target + 1) % portCount
                    }
                }
            }
        }
    }

    /// Waits until all is acknowledged; false where that takes too long.
    func wait(seconds: Int) -> Bool {
        group.wait(timeout: .now() + .seconds(seconds)) == .success
    }

    /// Tries once; false where another service should be tried next.
    private func attempt(
        _ delivery: ChaosDelivery,
        over line: ChaosLine,
        to port: UInt16,
        _ random: inout ChaosRandom
    ) -> Bool {
        let phase = delivery.attempts == 0 ? times.phase : nil
        book.willSend(delivery.number, at: Clock.seconds())
        let result = line.send(delivery.message, to: port)
        let now = Clock.seconds()
        switch result {
        case .unsent:
            state.withLock { $0.unsent += 1 }
        case .unanswered:
            book.wasNotAnswered(delivery.number)
        case .answered(200, let word, let position):
            guard let outcome = ChaosBook.Outcome(rawValue: word) else {
                violate("200 with the outcome “\(word)”")
                queue.finish()
                return true
            }
            book.wasAcknowledged(delivery.number, as: outcome, position: position, at: now)
            times.add(now - delivery.due, began: phase)
            state.withLock { $0.lastAcknowledged = now }
            if outcome == .stored, let position { acknowledged(delivery.stream, position) }
            guard delivery.comesAgain else {
                queue.finish()
                return true
            }
            var repeated = delivery
            repeated.comesAgain = false
            repeated.attempts = 1
            queue.retry(repeated, at: now + Double(random.between(0, 3000)) / 1000)
            return true
        case .answered(let status, let word, _):
            state.withLock { $0.refusals["\(status) \(word)", default: 0] += 1 }
            // What Apple signed for this app is never refused for good.
            if status != 503 {
                violate("a genuine notification was answered \(status) \(word)")
                queue.finish()
                return true
            }
        }
        var later = delivery
        later.attempts += 1
        queue.retry(later, at: now + Double(random.between(30, 300)) / 1000)
        return false
    }

    private func violate(_ what: String) { state.withLock { $0.violations.append(what) } }
}

/// Carries what one thread alone uses into that thread.
struct Unchecked<Value>: @unchecked Sendable {
    // Safety: the sender gives the value up, as `sending` has the compiler check.
    let value: Value

    init(_ value: sending Value) { self.value = value }
}
