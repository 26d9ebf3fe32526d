/// Compares Apple's status with what the timeline says at the instant at which it was signed.
///
/// Source: the lifecycle reference, 1.2: status is a cross-check and overrides nothing; it fills
/// holes, and where it disagrees there is something to ask Apple for. It is as of its own instant,
/// so one that comes late is compared with the past that it is about; and where news signed later
/// changed that past (a recovery within grace, a refund undone), it was right when it was signed.
struct StatusCheck {
    /// Notes each status that the timeline contradicts; the registers are finished.
    static func note(_ registers: borrowing Registers, in history: inout History) {
        // The last interval never ends.
        let last = history.timeline.count - 1
        guard last >= 0 else { return }
        var place = 0
        for number in registers.statuses.indices where registers.statuses[number].isKnown {
            let (status, at) = (
                registers.statuses[number].status, registers.statuses[number].at
            )
            while place < last, history.timeline[place + 1].from <= at { place += 1 }
            // Nearly always the period is active, and Apple says so.
            if status == 1, case .active = history.timeline[place].state { continue }
            // Before the first period the timeline says nothing.
            guard history.timeline[place].from <= at,
                !agrees(status, at, history.timeline[place]),
                wasSo(history.timeline[place], at, registers),
                status != 1 || !liesAhead(at, registers)
            else { continue }
            history.anomalies.append(
                Anomaly(
                    kind: .statusDisagrees,
                    position: registers.statuses[number].position
                )
            )
        }
    }

    /// Whether a status and an interval can both be right.
    private static func agrees(_ status: Int32, _ at: Timestamp, _ interval: Interval) -> Bool {
        switch interval.state {
        // A failed charge may be announced while the paid period still runs.
        case .active:
            return status == 1 || interval.hasBillingTrouble && (status == 3 || status == 4)
        // No news has come; that Apple still calls it active is none.
        case .renewalPending: return status == 1
        case .gracePeriod: return status == 4
        case .billingRetry: return status == 3
        case .expired: return status == 2
        // What was refunded expires as well when its period is over.
        case .revoked:
            return status == 5 || status == 2 && interval.expiresDate.map { $0 <= at } ?? true
        }
    }

    /// Whether the interval is so by what was signed by then, as far as can be told.
    private static func wasSo(
        _ interval: Interval,
        _ at: Timestamp,
        _ registers: borrowing Registers
    ) -> Bool {
        let decider = interval.deciding.marker
        switch interval.state {
        case .renewalPending: return true
        case .active, .revoked:
            guard
                let number = registers.periods.firstIndex(where: {
                    $0.transactionID == interval.transactionID
                })
            else { return false }
            let isExtended = registers.periods[number].firstEnd.map { $0 <= at } ?? false
            if interval.state.isRevoked || isExtended {
                return registers.periods[number].signedDate <= at
            }
            return registers.periods[number].firstAt <= at
                && !registers.reversals.contains { $0.revokedAt <= at && at < $0.reversedAt }
        case .gracePeriod, .billingRetry, .expired:
            if let marker = registers.markers.first(where: { $0.position == decider }) {
                return marker.at <= at
            }
            // Only renewal info says so, or nobody but the clock.
            if decider == 0, interval.confidence == .clock { return true }
            let position = decider == 0 ? interval.deciding.renewal : decider
            return registers.renewals.first { $0.position == position }.map { $0.at <= at } ?? true
        }
    }

    /// Whether a period that was told of by then is yet to begin.
    private static func liesAhead(_ at: Timestamp, _ registers: borrowing Registers) -> Bool {
        registers.periods.contains {
            $0.start > at && $0.firstAt <= at && $0.revocation.map { $0 > at } ?? true
        }
    }
}
