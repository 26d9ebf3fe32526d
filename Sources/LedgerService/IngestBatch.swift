internal import Crypto
internal import EventLog

/// Lines gathered for one append.
struct Batch {
    /// One fact of a line that wants to become an event.
    struct Fact {
        /// The line's place in the batch.
        var line: Int
        var event: NewEvent
        /// Whether the log has it, said again.
        var isUnchanged = false
    }

    /// How many events it may hold.
    private let countMax: Int
    var lines: [JudgedLine] = []
    var admittedCount = 0
    var sizeBytes = 0
    var hasUnattributed = false
    private let start = ContinuousClock.now

    init(countMax: Int = BatchLimit.bulk.count) { self.countMax = countMax }

    /// How long ago it was begun.
    var age: Duration { lines.isEmpty ? .zero : ContinuousClock.now - start }

    /// The facts among the lines, in order.
    var facts: [Fact] {
        lines.enumerated().flatMap { index, line in
            line.judgement.parts.compactMap { part in
                guard case .admitted(.event(let event, _)) = part else { return nil }
                return Fact(line: index, event: event)
            }
        }
    }

    /// The bodies of saved responses of which something is new.
    ///
    /// - Parameters:
    ///   - facts: the facts of the batch.
    ///   - existing: which of some events the log has.
    /// - Returns: the bodies as events.
    /// - Throws: what `existing` throws.
    func bodies(
        withNewsIn facts: [Fact],
        existing: ([NewEvent]) throws -> Set<Int>
    ) throws -> [NewEvent] {
        var bodies: [NewEvent] = []
        for (index, line) in lines.enumerated() {
            guard case .answer(let reading, let body) = line.judgement else { continue }
            let news = facts.filter { $0.line == index && !$0.isUnchanged }.map(\.event)
            guard !news.isEmpty, try existing(news).count < news.count else { continue }
            let digest = hexadecimal(SHA256.digest(body))
            let event = reading.event(
                of: body,
                endpoint: "import",
                run: "import",
                requestID: digest
            )
            if let event { bodies.append(event) }
        }
        return bodies
    }

    var isFull: Bool {
        admittedCount >= countMax || sizeBytes >= Ingest.batchSizeMaxBytes
            || lines.count >= BatchLimit.bulk.count * 4
    }

    mutating func add(_ line: JudgedLine) {
        lines.append(line)
        if case .answer(_, let body) = line.judgement { sizeBytes += body.count }
        for part in line.judgement.parts {
            guard case .admitted(let admission) = part else { continue }
            admittedCount += 1
            switch admission {
            case .event(let event, _): sizeBytes += event.received.count
            case .unattributed(let event, _):
                sizeBytes += event.received.count
                hasUnattributed = true
            case .quarantine(let document, _): sizeBytes += document.received.count
            }
        }
    }
}

extension JudgedLine.Judgement {
    /// The facts of a line: one, or all that a saved response holds.
    var parts: [ResponseReading.Part] {
        switch self {
        case .admitted(let admission): [.admitted(admission)]
        case .rejected(let rejection): [.rejected(rejection)]
        case .answer(let reading, _): reading.parts
        }
    }
}
