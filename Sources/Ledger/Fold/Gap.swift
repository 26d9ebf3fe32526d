/// What is said of a stretch of time that no transaction covers.
struct Piece {
    var from: Timestamp
    /// Nil where it never ends.
    var until: Timestamp?
    var state: SubscriptionState
    var confidence: Confidence = .confirmed
    var graceEnd: Timestamp?
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
    let registers: Registers
    let rules: AppRules
    /// The first instant without cover.
    let from: Timestamp
    /// Where the next cover begins; nil at the open end.
    let until: Timestamp?
    /// The transaction that covered last; its end is E.
    let last: Period
    /// The period that began last before the gap.
    let latest: Period
    /// Whether every transaction of that latest period was taken back.
    let revokedAt: Timestamp?
    /// The next transaction; only what was signed before it counts here.
    let next: Period?

    /// E, from which grace, retry and leeway are counted.
    var end: Timestamp {
        last.revocation == nil ? last.end : latest.end
    }

    /// The pieces, in order, without holes.
    func pieces() -> [Piece] {
        var pieces: [Piece] = []
        var revokedFrom = revokedAt.map { max($0, from) }
        if let until, let at = revokedFrom, at >= until { revokedFrom = nil }
        let ordinaryUntil = revokedFrom ?? until
        if ordinaryUntil.map({ $0 > from }) ?? true {
            ordinary(until: ordinaryUntil, into: &pieces)
        }
        if let revokedFrom {
            var piece = Piece(
                from: revokedFrom,
                until: until,
                state: .revoked(RevocationCause(latest))
            )
            piece.deciding.transaction = latest.position
            pieces.append(piece)
        }
        return pieces
    }

    private func ordinary(until stop: Timestamp?, into pieces: inout [Piece]) {
        let evidence = GapEvidence(self)
        var cursor = from
        func add(_ piece: Piece, to end: Timestamp?, _ cursor: inout Timestamp) {
            var bounded = piece
            bounded.from = cursor
            bounded.until = Self.earlier(end, stop)
            if let until = bounded.until {
                guard until > cursor else { return }
                cursor = until
            }
            pieces.append(bounded)
        }
        var base = Piece(from: from, until: nil, state: .active)
        base.deciding.transaction = last.position
        base.deciding.renewal = evidence.renewal?.position ?? 0
        base.hadGrace = evidence.graceFailure != nil

        if let grace = evidence.grace(of: self) {
            var piece = base
            piece.state = .gracePeriod
            piece.graceEnd = grace.announcedEnd
            piece.confidence = grace.confidence
            piece.deciding.marker = evidence.graceFailure?.position ?? 0
            piece.deciding.renewal = grace.position
            add(piece, to: grace.end, &cursor)
            base.graceEnd = grace.announcedEnd
        }
        if let failure = evidence.failure {
            var piece = base
            piece.state = .billingRetry
            piece.deciding.marker = failure.position
            add(piece, to: evidence.retryEnd(of: self), &cursor)
        }
        if let stop, cursor >= stop { return }
        var piece = base
        if evidence.failure == nil, !evidence.isOver, evidence.mayRenew {
            var pending = base
            pending.state = .renewalPending
            pending.confidence = .clock
            add(pending, to: leewayEnd, &cursor)
            if let stop, cursor >= stop { return }
        }
        (piece.state, piece.confidence, piece.deciding) = evidence.conclusion(
            of: self,
            base.deciding
        )
        add(piece, to: nil, &cursor)
    }

    private var leewayEnd: Timestamp {
        let profile = Clock.profile(period: last.length, rules: rules)
        let policy = rules.policy(at: end)
        return end.adding(policy.lapseLeeway ?? Clock.leeway(profile))
    }

    private static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }
}

extension RevocationCause {
    /// The cause that a revoked transaction names; what it does not name is a refund.
    init(_ period: Period) {
        switch period.revocationType {
        case .refundProrated: self = .refundProrated
        case .familyRevoke: self = .familyRevoke
        case .assignmentRevoke: self = .assignmentRevoke
        default:
            // Before December 2025 there is no type; a family member is never refunded.
            self = period.ownership == .familyShared ? .familyRevoke : .refund
        }
    }
}

extension AppRules {
    /// The access policy in force at an instant.
    func policy(at instant: Timestamp) -> AccessPolicy {
        policies.last { $0.effectiveFrom <= instant } ?? policies[0]
    }
}
