/// What is said of a stretch of time that no transaction covers.
struct Piece {
    var from: Timestamp
    /// Nil where it never ends.
    @Packed var until: Timestamp?
    var state: SubscriptionState
    var confidence: Confidence = .confirmed
    @Packed var graceEnd: Timestamp?
    /// Whether grace was announced in this gap: a policy of "until grace ends" then adds nothing.
    var hadGrace = false
    var deciding = DecidingPositions()
}

/// The time between the end of cover and the next transaction.
///
/// Source: rules 2 to 7 of the lifecycle reference, 3.2, with what was signed before that next
/// transaction. Two readings of ours: what opens a failure counts from the end of the period on,
/// also where it was announced later; what closes it (the end of grace, `EXPIRED`) counts from
/// its own instant on, so that the past keeps its grace and retry.
struct Gap {
    /// The first instant without cover.
    let from: Timestamp
    /// Where the next cover begins; nil at the open end.
    let until: Timestamp?
    /// The transaction that covered last, by its place in the registers.
    let last: Int
    /// The period that began last before the gap.
    let latest: Int
    /// When every transaction of that latest period was taken back.
    let revokedAt: Timestamp?
    /// E, from which grace, retry and leeway are counted.
    let end: Timestamp
    /// Only what was signed before the next transaction, or any later one, was told of counts
    /// here; nil at the open end.
    let cut: Timestamp?
    /// The period that comes after, by its place in the registers; nil at the open end.
    let next: Int?

    init(
        _ registers: borrowing Registers,
        from: Timestamp,
        until: Timestamp?,
        last: Int,
        latest: Int,
        next: Int?,
        cut: Timestamp?,
        revokedAt: Timestamp?
    ) {
        self.from = from
        self.until = until
        self.last = last
        self.latest = latest
        self.revokedAt = revokedAt
        end =
            registers.periods[last].revocation == nil
            ? registers.periods[last].end : registers.periods[latest].end
        self.cut = cut
        self.next = next
    }

    /// How long Apple retries a charge that failed at the end of the period.
    func retryLimit(_ registers: borrowing Registers, _ rules: FoldRules) -> Timestamp {
        let profile = rules.profile(period: registers.periods[last].length)
        let isCommitment = registers.periods[last].isCommitment
        return end.adding(Clock.billingRetry(profile, isCommitment: isCommitment))
    }

    /// Adds the pieces, in order, without holes.
    func append(
        to pieces: inout Pool<Piece>,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        var revokedFrom = revokedAt.map { max($0, from) }
        if let until, let at = revokedFrom, at >= until { revokedFrom = nil }
        let ordinaryUntil = revokedFrom ?? until
        if ordinaryUntil.map({ $0 > from }) ?? true {
            appendOrdinary(to: &pieces, until: ordinaryUntil, registers, events, rules)
        }
        if let revokedFrom {
            let place = registers.periods[latest].place
            var piece = Piece(
                from: revokedFrom,
                state: .revoked(
                    RevocationCause(
                        events[place].fact.storedTransaction.revocationType,
                        events[place].fact.storedTransaction.ownership
                    )
                )
            )
            piece.until = until
            piece.deciding.transaction = registers.periods[latest].position
            pieces.append(piece)
        }
    }

    private func appendOrdinary(
        to pieces: inout Pool<Piece>,
        until stop: Timestamp?,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        let evidence = GapEvidence(self, registers, events, rules)
        let profile = rules.profile(period: registers.periods[last].length)
        var piece = Piece(from: from, state: .active)
        piece.deciding.transaction = registers.periods[last].position
        if let renewal = evidence.renewal {
            piece.deciding.renewal = registers.renewals[renewal].position
        }
        let base = piece.deciding
        if let failure = evidence.failure {
            piece.hadGrace = evidence.graceFailure != nil
            if let grace = evidence.grace(of: self, registers, events, rules) {
                piece.state = .gracePeriod
                piece.graceEnd = grace.announcedEnd
                piece.confidence = grace.confidence
                piece.deciding.marker = evidence.graceFailure?.position ?? 0
                piece.deciding.renewal = grace.position
                if !Self.add(&piece, to: grace.end, stop, &pieces) { return }
            }
            piece.state = .billingRetry
            piece.confidence = .confirmed
            piece.deciding = base
            piece.deciding.marker = failure.position
            let end = evidence.retryEnd(of: self, registers, rules)
            if !Self.add(&piece, to: end, stop, &pieces) { return }
        } else if !evidence.isOver, evidence.mayRenew,
            // An empty period grants nothing, so nothing after it either.
            registers.periods[last].end > registers.periods[last].start
        {
            piece.state = .renewalPending
            piece.confidence = .clock
            let leeway = rules.lapseLeeway(at: end) ?? Clock.leeway(profile)
            if !Self.add(&piece, to: end.adding(leeway), stop, &pieces) { return }
        }
        piece.deciding = base
        evidence.conclude(&piece)
        _ = Self.add(&piece, to: nil, stop, &pieces)
    }

    /// Adds a piece up to an end and moves its start there; false where nothing is left to fill.
    private static func add(
        _ piece: inout Piece,
        to end: Timestamp?,
        _ stop: Timestamp?,
        _ pieces: inout Pool<Piece>
    ) -> Bool {
        piece.until = earlier(end, stop)
        guard let until = piece.until else {
            pieces.append(piece)
            return false
        }
        guard until > piece.from else { return stop.map { piece.from < $0 } ?? true }
        pieces.append(piece)
        piece.from = until
        return stop.map { until < $0 } ?? true
    }

    private static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }
}

extension SubscriptionState {
    var isRevoked: Bool {
        if case .revoked = self { true } else { false }
    }

    /// Whether nothing of it is left: expired or revoked.
    var isOver: Bool {
        switch self {
        case .expired, .revoked: true
        default: false
        }
    }
}

extension RevocationCause {
    /// The cause that a revoked transaction names; what it does not name is a refund.
    init(_ type: RevocationType?, _ ownership: Ownership?) {
        switch type {
        case .refundProrated: self = .refundProrated
        case .familyRevoke: self = .familyRevoke
        case .assignmentRevoke: self = .assignmentRevoke
        default:
            // Before December 2025 there is no type; a family member is never refunded.
            self = ownership == .familyShared ? .familyRevoke : .refund
        }
    }
}

extension AppRules {
    /// The access policy in force at an instant.
    func policy(at instant: Timestamp) -> AccessPolicy {
        policies.last { $0.effectiveFrom <= instant } ?? policies[0]
    }
}
