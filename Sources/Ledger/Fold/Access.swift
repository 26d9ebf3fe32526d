/// Grants or denies access in a stretch that no transaction covers.
struct AccessDecision {
    /// Grace period, billing retry or revoked.
    let state: SubscriptionState
    /// Whether the end of grace was estimated from configuration.
    let isEstimated: Bool
    /// Whether grace was announced in the gap.
    let hadGrace: Bool
    /// The end of the paid period, from which a policy's days are counted.
    let end: Timestamp
    /// The end of the period that a refund took back.
    let paidUntil: Timestamp
    /// The grace that configuration promises.
    let grace: Milliseconds?

    /// Decides for one interval that begins at an instant.
    func isEntitled(at from: Timestamp, _ policy: AccessPolicy) -> Bool {
        switch state {
        case .active, .expired, .renewalPending: false
        case .gracePeriod: !isEstimated || policy.missingGraceDate == .estimate
        case .billingRetry: retryEnd(policy).map { from < $0 } ?? false
        case .revoked(let cause):
            (cause == .refund || cause == .refundProrated) && !policy.refundEndsAccess
                && from < paidUntil
        }
    }

    /// The answer of a policy where it is the same throughout the stretch; nil where it hangs on the
    /// instant.
    func isEntitledThroughout(_ policy: AccessPolicy) -> Bool? {
        switch state {
        case .active, .expired, .renewalPending: false
        case .gracePeriod: !isEstimated || policy.missingGraceDate == .estimate
        case .billingRetry: policy.billingRetryAccess == .deny ? false : nil
        case .revoked: policy.refundEndsAccess ? false : nil
        }
    }

    /// The first instant after one at which a policy's answer may change, or else `until`.
    func end(after from: Timestamp, before until: Timestamp, _ rules: AppRules) -> Timestamp {
        var first = until
        switch state {
        case .billingRetry:
            for policy in rules.policies {
                if let end = retryEnd(policy), end > from { first = min(first, end) }
            }
        case .revoked:
            if paidUntil > from { first = min(first, paidUntil) }
        default: break
        }
        return first
    }

    /// Until when a policy serves a subscriber in billing retry; nil for not at all.
    private func retryEnd(_ policy: AccessPolicy) -> Timestamp? {
        switch policy.billingRetryAccess {
        case .deny: nil
        case .allow: .latest
        case .days(let days): end.adding(.days(Int64(min(max(days, 0), 60))))
        case .untilGraceEnds: hadGrace ? nil : grace.map { end.adding($0) }
        }
    }
}

/// The rules of an app, with what the fold asks of them most.
///
/// A class, so that handing them on copies nothing.
final class FoldRules: Sendable {
    let rules: AppRules
    /// The first policy; the only one where there are not several.
    let first: AccessPolicy
    /// Whether there is one policy, which counts throughout.
    let isSingle: Bool
    /// The version of the first policy.
    let firstVersion: Int32
    /// The profile that counts for every period, nil where its length decides.
    private let profile: ClockProfile?

    init(_ rules: AppRules) {
        self.rules = rules
        first = rules.policies[0]
        firstVersion = rules.policies[0].version
        isSingle = rules.policies.count == 1
        profile = rules.clockProfile ?? (rules.environment == .production ? .production : nil)
    }

    /// The access policy in force at an instant.
    func policy(at instant: Timestamp) -> AccessPolicy {
        isSingle ? first : rules.policy(at: instant)
    }

    /// How long after the end access goes on, where the policy in force says so.
    @inline(__always) func lapseLeeway(at instant: Timestamp) -> Milliseconds? {
        isSingle ? first.lapseLeeway : rules.policy(at: instant).lapseLeeway
    }

    /// Which clock profile counts for a transaction of so long a period.
    @inline(__always) func profile(period: Milliseconds) -> ClockProfile {
        profile ?? (period > Clock.acceleratedPeriodMax ? .production : .sandbox)
    }
}
