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
    /// Only what was signed before the next transaction counts here; nil at the open end.
    let cut: Timestamp?

    init(
        _ registers: borrowing Registers,
        from: Timestamp,
        until: Timestamp?,
        last: Int,
        latest: Int,
        next: Int?,
        revokedAt: Timestamp?
    ) {
        self.from = from
        self.until = until
        self.last = last
        self.latest = latest
        self.revokedAt = revokedAt
        end =
            registers.periods[last].revocationDate == nil
            ? registers.periods[last].end : registers.periods[latest].end
        cut = next.map { registers.periods[$0].firstSigned }
    }

    /// The pieces, in order, without holes.
    func pieces(_ registers: borrowing Registers, _ rules: AppRules) -> [Piece] {
        var pieces: [Piece] = []
        var revokedFrom = revokedAt.map { max($0, from) }
        if let until, let at = revokedFrom, at >= until { revokedFrom = nil }
        let ordinaryUntil = revokedFrom ?? until
        if ordinaryUntil.map({ $0 > from }) ?? true {
            ordinary(until: ordinaryUntil, registers, rules, into: &pieces)
        }
        if let revokedFrom {
            var piece = Piece(
                from: revokedFrom,
                until: until,
                state: .revoked(
                    RevocationCause(
                        registers.periods[latest].revocationType,
                        registers.periods[latest].ownership
                    )
                )
            )
            piece.deciding.transaction = registers.periods[latest].position
            pieces.append(piece)
        }
        return pieces
    }

    private func ordinary(
        until stop: Timestamp?,
        _ registers: borrowing Registers,
        _ rules: AppRules,
        into pieces: inout [Piece]
    ) {
        let evidence = GapEvidence(self, registers)
        let profile = Clock.profile(period: registers.periods[last].length, rules: rules)
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
        base.deciding.transaction = registers.periods[last].position
        base.deciding.renewal = evidence.renewal?.position ?? 0
        base.hadGrace = evidence.graceFailure != nil

        if let grace = evidence.grace(of: self, registers, rules) {
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
            add(piece, to: evidence.retryEnd(of: self, registers, profile), &cursor)
        }
        if let stop, cursor >= stop { return }
        var piece = base
        if evidence.failure == nil, !evidence.isOver, evidence.mayRenew {
            var pending = base
            pending.state = .renewalPending
            pending.confidence = .clock
            let leeway = rules.policy(at: end).lapseLeeway ?? Clock.leeway(profile)
            add(pending, to: end.adding(leeway), &cursor)
            if let stop, cursor >= stop { return }
        }
        (piece.state, piece.confidence, piece.deciding) = evidence.conclusion(
            of: self,
            base.deciding
        )
        add(piece, to: nil, &cursor)
    }

    private static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
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
