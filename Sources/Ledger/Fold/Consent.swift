/// A guardian's withdrawal of the consent to a customer's use of the app (`RESCIND_CONSENT`).
///
/// It names no purchase but an `appTransactionId`, and so concerns every subscription whose
/// transactions carry that number.
public struct ConsentWithdrawal: Hashable, Sendable {
    /// When Apple signed it.
    public var at: Timestamp
    /// The event that tells of it.
    public var position: Int64

    /// Makes a withdrawal.
    public init(at: Timestamp, position: Int64) {
        self.at = at
        self.position = position
    }
}

extension ArraySlice<Interval> {
    /// Takes our access, never Apple's line, away from the first withdrawal on, as far as the
    /// access policy says so.
    ///
    /// It is no billing fact: states stay as they are. Apple has no notification of a consent given
    /// again, so nothing here ends it but a policy that does not suspend.
    mutating func suspend(_ withdrawals: [ConsentWithdrawal], _ rules: AppRules) {
        guard
            let first = withdrawals.min(by: { ($0.at, $0.position) < ($1.at, $1.position) })
        else { return }
        var result: [Interval] = []
        for interval in self {
            let isOver = interval.until.map { $0 <= first.at } ?? false
            // Intervals are split wherever a policy begins.
            guard !isOver, interval.entitled,
                rules.policy(at: interval.from).rescindedConsentSuspends
            else {
                result.append(interval)
                continue
            }
            var rest = interval
            if interval.from < first.at {
                var head = interval
                head.until = first.at
                rest.from = first.at
                result.append(head)
            }
            rest.entitled = false
            rest.deciding.consent = first.position
            result.append(rest)
        }
        self = result[...]
    }
}
