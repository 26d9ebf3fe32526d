import Testing

@testable import Ledger

/// Streams far longer than any that Apple writes.
@Suite struct LongStreamTests {
    @Test func aLongStreamIsFoldedInOneGo() {
        var life = Life()
        for month in 0..<5000 {
            let from = Life.day(Double(month))
            life.notify(
                .didRenew,
                at: from,
                Life.transaction(
                    UInt64(month + 1),
                    from: from,
                    until: from.adding(.days(1)),
                    reason: .renewal
                ),
                Life.renewal()
            )
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: from.adding(.hours(1)),
                nil,
                Life.renewal { $0.autoRenewStatus = Int32(month % 2) }
            )
        }
        let history = life.history
        #expect(history.timeline.count > 5000)
        #expect(history.knownToPosition == 10_000)
    }
}
