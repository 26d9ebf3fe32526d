extension TimelineBuilder {
    /// Grants or denies access in a stretch that no transaction covers.
    func decideAccess(
        _ interval: inout Interval,
        _ piece: Piece,
        _ period: Period,
        gapEnd: Timestamp
    ) {
        let policy = rules.policy(at: interval.from)
        switch piece.state {
        case .active: break
        case .gracePeriod:
            interval.entitledApple = true
            interval.entitled =
                piece.confidence != .estimated || policy.missingGraceDate == .estimate
        case .renewalPending:
            interval.entitled = true
        case .billingRetry:
            let end = retryAccessEnd(policy, piece, period, gapEnd: gapEnd)
            interval.entitled = end.map { interval.from < $0 } ?? false
        case .expired: break
        case .revoked(let cause):
            let isRefund = cause == .refund || cause == .refundProrated
            interval.entitled =
                isRefund && !policy.refundEndsAccess && interval.from < period.end
        }
    }

    /// The instants inside a piece at which a policy's answer may change.
    func accessBounds(_ piece: Piece, _ period: Period, gapEnd: Timestamp) -> [Timestamp?] {
        switch piece.state {
        case .billingRetry:
            rules.policies.map { retryAccessEnd($0, piece, period, gapEnd: gapEnd) }
        case .revoked: [period.end]
        default: []
        }
    }

    /// Until when a policy serves a subscriber in billing retry; nil for not at all.
    private func retryAccessEnd(
        _ policy: AccessPolicy,
        _ piece: Piece,
        _ period: Period,
        gapEnd: Timestamp
    ) -> Timestamp? {
        switch policy.billingRetryAccess {
        case .deny: return nil
        case .allow: return .latest
        case .days(let days): return gapEnd.adding(.days(Int64(min(max(days, 0), 60))))
        case .untilGraceEnds:
            guard !piece.hadGrace else { return nil }
            let plan = Clock.plan(
                product: period.productID,
                period: period.length,
                rules: rules
            )
            return Clock.configuredGrace(plan: plan, rules: rules).map { gapEnd.adding($0) }
        }
    }
}
