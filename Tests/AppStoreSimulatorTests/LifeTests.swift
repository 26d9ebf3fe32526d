import AppStoreSimulator
import Testing

@Suite struct LifeTests {
    static let until: Int64 = 1_767_225_600_000
    static let from: Int64 = until - 730 * 86_400_000
    static let seed: UInt64 = 7
    static let rareFactor = 5.0
    static let lives = (0..<2000).map { life($0) }

    static func life(_ number: Int, seed: UInt64 = seed) -> Life {
        Life(number: number, seed: seed, from: from, until: until, rareFactor: rareFactor)
    }

    @Test func equalSeedsGiveEqualLives() {
        for number in 0..<50 {
            let again = Self.life(number)
            #expect(again.notices == Self.lives[number].notices)
            #expect(again.intervals == Self.lives[number].intervals)
        }
        let other = Self.life(0, seed: Self.seed + 1)
        #expect(other.notices != Self.lives[0].notices)
    }

    @Test func everyKindOfLifeOccurs() {
        var counts: [LifeEvent: Int] = [:]
        for life in Self.lives { for event in life.events { counts[event, default: 0] += 1 } }
        for event in LifeEvent.allCases {
            #expect(counts[event, default: 0] >= 5, "\(event) in 2000 lives")
        }
    }

    @Test func noticesAreInOrderAndWithinTheTime() {
        for life in Self.lives {
            #expect(!life.notices.isEmpty)
            #expect(Set(life.notices.map(\.uuid)).count == life.notices.count)
            for (earlier, later) in zip(life.notices, life.notices.dropFirst()) {
                #expect(earlier.signedDate + 1000 < later.signedDate)
            }
            for notice in life.notices {
                #expect(notice.signedDate < Self.until)
                if let signed = notice.transaction?.signedDate {
                    #expect(signed <= notice.signedDate)
                }
                if let signed = notice.renewal?.signedDate { #expect(signed <= notice.signedDate) }
                guard notice.isOfSubscription, let transaction = notice.transaction,
                    transaction.seats?.additionalReason == nil
                else { continue }
                let period = transaction.expiresDate - transaction.purchaseDate
                #expect(period > 86_400_000, "the production clock applies to every period")
            }
        }
    }

    /// The evaluator of delivered facts and the script are two programs; where everything was
    /// delivered, they must tell the same story.
    @Test func withNothingLostTheDeliveredTruthIsTheScript() {
        var differing = 0
        for (number, life) in Self.lives.enumerated() {
            let truth = DeliveredTruth(life.notices, configuredGraceDays: 16).intervals()
            guard truth != life.intervals else { continue }
            differing += 1
            guard differing <= 3 else { continue }
            Issue.record("life \(number) of seed \(Self.seed): \(truth) is not \(life.intervals)")
        }
        #expect(differing == 0)
    }

    @Test func theOrderAndRepeatsOfDeliveryChangeNothing() {
        for life in Self.lives.prefix(150) {
            let truth = DeliveredTruth(life.notices, configuredGraceDays: 16).intervals()
            let other = DeliveredTruth(
                life.notices.reversed() + life.notices,
                configuredGraceDays: 16
            )
            #expect(other.intervals() == truth)
        }
    }

    @Test func intervalsAreWhatEachInstantSays() {
        for life in Self.lives.prefix(80) {
            // Half of the news, so that there are holes.
            let some = life.notices.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
            let truth = DeliveredTruth(some)
            let intervals = truth.intervals()
            guard let first = intervals.first else { continue }
            for step in 0..<200 {
                let instant = first.from - 86_400_000 + Int64(step) * 15_308_642_000
                let expected = intervals.last { $0.from <= instant }
                let found = truth.condition(at: instant)
                #expect(found?.condition == expected?.condition)
                #expect(found?.productID == expected?.productID)
            }
        }
    }
}
