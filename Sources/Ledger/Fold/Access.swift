/// Grants or denies access in a stretch that no transaction covers.
struct AccessDecision {
    let piece: Piece
    /// The end of the paid period, from which a policy's days are counted.
    let end: Timestamp
    /// The end of the period that a refund took back.
    let paidUntil: Timestamp
    /// The grace that configuration promises.
    let grace: Milliseconds?

    /// Decides for one interval, which lies within the piece.
    func decide(_ interval: inout Interval, _ policy: AccessPolicy) {
        switch piece.state {
        case .active, .expired: break
        case .gracePeriod:
            interval.entitledApple = true
            interval.entitled =
                piece.confidence != .estimated || policy.missingGraceDate == .estimate
        case .renewalPending:
            interval.entitled = true
        case .billingRetry:
            interval.entitled = retryEnd(policy).map { interval.from < $0 } ?? false
        case .revoked(let cause):
            let isRefund = cause == .refund || cause == .refundProrated
            interval.entitled = isRefund && !policy.refundEndsAccess && interval.from < paidUntil
        }
    }

    /// The instants inside the piece at which a policy's answer may change.
    func bounds(_ rules: AppRules) -> [Timestamp] {
        switch piece.state {
        case .billingRetry: rules.policies.compactMap { retryEnd($0) }
        case .revoked: [paidUntil]
        default: []
        }
    }

    /// Until when a policy serves a subscriber in billing retry; nil for not at all.
    private func retryEnd(_ policy: AccessPolicy) -> Timestamp? {
        switch policy.billingRetryAccess {
        case .deny: nil
        case .allow: .latest
        case .days(let days): end.adding(.days(Int64(min(max(days, 0), 60))))
        case .untilGraceEnds: piece.hadGrace ? nil : grace.map { end.adding($0) }
        }
    }
}
