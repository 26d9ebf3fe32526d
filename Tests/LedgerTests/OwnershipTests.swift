import Testing

@testable import Ledger

/// Whose a subscription is when (lifecycle 4.7): Apple's token, or an operator's link before it.
@Suite struct OwnershipTests {
    private typealias Row = NotificationRow
    private static let (first, second, third) = (
        UniqueID(bits: 1), UniqueID(bits: 2), UniqueID(bits: 3)
    )

    private static func link(_ owner: UniqueID, _ day: Double) -> Fact {
        var fact = Fact(kind: .ownerLinked, provenance: .operator, factAt: Life.day(day))
        fact.linkedOwner = owner
        return fact
    }

    private static func read(_ day: Double, _ transaction: TransactionFact) -> Fact {
        var fact = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(day))
        fact.transaction = transaction
        fact.transaction?.signedDate = Life.day(day)
        return fact
    }

    private static func month(_ id: UInt64, _ from: Double, _ owner: UniqueID?) -> TransactionFact {
        Row.month(id, from, from + 30) { $0.appAccountToken = owner }
    }

    /// Owners, each from a day on, linked ones in brackets.
    private static func owners(_ facts: Fact...) -> [String] {
        var life = Life()
        for fact in facts { life.add(fact) }
        let ownership = life.history.ownership
        for (one, next) in zip(ownership, ownership.dropFirst()) {
            #expect(one.until == next.from && one.from < next.from)
        }
        #expect(ownership.last?.until == nil)
        return ownership.map {
            let day = ($0.from.milliseconds - Life.t0.milliseconds) / 86_400_000
            return $0.isLinked ? "(\($0.owner.bits) \(day))" : "\($0.owner.bits) \(day)"
        }
    }

    private static func conflicts(_ facts: Fact...) -> [Int64] {
        var life = Life()
        for fact in facts { life.add(fact) }
        return life.history.anomalies.filter { $0.kind == .ownerConflict }.map(\.position)
    }

    @Test func theFirstTokenIsTheOwnersFromThePurchaseOnHoweverLateItIsTold() {
        #expect(
            Self.owners(
                Self.read(1, Self.month(1, 0, nil)),
                Self.read(9, Self.month(1, 0, Self.first))
            ) == ["1 0"]
        )
    }

    @Test func anotherTokenCountsFromItsSignatureOn() {
        let bought = Self.read(1, Self.month(1, 0, Self.first))
        #expect(Self.owners(bought, Self.read(9, Self.month(1, 0, Self.second))) == ["1 0", "2 9"])
        let renewed = Self.read(31, Self.month(2, 30, Self.second))
        #expect(Self.owners(bought, renewed) == ["1 0", "2 31"])
        #expect(
            Self.owners(bought, renewed, Self.read(61, Self.month(3, 60, Self.first)))
                == ["1 0", "2 31", "1 61"]
        )
        // A missing token clears no owner, and the same one changes none.
        #expect(Self.owners(bought, Self.read(31, Self.month(2, 30, nil))) == ["1 0"])
        #expect(Self.owners(bought, Self.read(31, Self.month(2, 30, Self.first))) == ["1 0"])
    }

    @Test func anOlderTransactionThatIsToldAgainNeverTakesItBack() {
        let bought = Self.read(1, Self.month(1, 0, Self.first))
        let renewed = Self.read(31, Self.month(2, 30, Self.second))
        let again = Self.read(40, Self.month(1, 0, Self.first))
        #expect(Self.owners(bought, renewed, again) == ["1 0", "2 31"])
        #expect(Self.conflicts(bought, renewed, again) == [], "what was told of its own time")
        let strange = Self.read(40, Self.month(1, 0, Self.third))
        #expect(Self.conflicts(bought, renewed, strange) == [3])
        let agreeing = Self.read(40, Self.month(1, 0, Self.second))
        #expect(Self.conflicts(bought, renewed, agreeing) == [])
        #expect(Self.conflicts(bought, renewed) == [])
    }

    @Test func aLinkCountsFromItsInstantUntilApplesToken() {
        let link = Self.link(Self.third, -2)
        #expect(Self.owners(link) == ["(3 -2)"])
        #expect(Self.owners(link, Self.read(1, Self.month(1, 0, Self.first))) == ["(3 -2)", "1 0"])
        // A link from after the purchase was made without knowing the token.
        #expect(
            Self.owners(Self.link(Self.third, 5), Self.read(9, Self.month(1, 0, Self.first)))
                == ["1 0"]
        )
        #expect(
            Self.owners(Self.link(Self.third, 0), Self.read(9, Self.month(1, 0, Self.first)))
                == ["1 0"]
        )
        // Apple's word that it is the same one is Apple's word.
        #expect(
            Self.owners(Self.link(Self.first, 5), Self.read(9, Self.month(1, 0, Self.first)))
                == ["1 0"]
        )
    }

    @Test func noLinkCountsOnceThereIsATokenAndTheSameOneOnlyOnce() {
        let bought = Self.read(1, Self.month(1, 0, Self.first))
        #expect(Self.owners(bought, Self.link(Self.third, 5)) == ["1 0"])
        #expect(
            Self.owners(Self.link(Self.third, 5), Self.link(Self.third, 6)) == ["(3 5)"]
        )
        #expect(
            Self.owners(Self.link(Self.third, 5), Self.link(Self.second, 6))
                == ["(3 5)", "(2 6)"]
        )
    }

    @Test func aReceiptThatNamesAnotherOwnerThanASignedTextIsAConflict() {
        func receipt(_ owner: UniqueID) -> Fact {
            var fact = Self.read(50, Self.month(1, 0, owner))
            fact.kind = .receipt
            fact.provenance = .receipt
            return fact
        }
        let bought = Self.read(1, Self.month(1, 0, Self.first))
        #expect(Self.conflicts(bought, receipt(Self.second)) == [2])
        #expect(Self.conflicts(bought, receipt(Self.first)) == [])
        #expect(Self.owners(bought, receipt(Self.second)) == ["1 0"])
    }

    /// One claim is enough to contradict, and the same owner told again contradicts nothing.
    @Test func anOlderTransactionOfAnotherOwnerIsAConflictWithTheOnlyClaim() {
        let renewed = Self.read(31, Self.month(2, 30, Self.second))
        let older = Self.read(40, Self.month(1, 0, Self.first))
        #expect(Self.owners(renewed, older) == ["2 30"])
        #expect(Self.conflicts(renewed, older) == [2])
        let again = Self.read(40, Self.month(2, 30, Self.second))
        #expect(Self.conflicts(renewed, again) == [])
    }

    /// Of two tokens signed in one millisecond that of the version that counts stays.
    @Test func ofTwoTokensOfOneInstantTheLaterInTheOrderStays() {
        let short = Self.read(0, Self.month(1, 0, Self.first))
        let long = Self.read(0, Row.month(1, 0, 31) { $0.appAccountToken = Self.second })
        #expect(Self.owners(short, long) == ["2 0"])
        #expect(Self.owners(long, short) == ["2 0"])
    }

    /// A link that Apple's token confirms from its very instant on is Apple's word.
    @Test func aLinkOfThePurchasesOwnInstantGivesWayToTheSameToken() {
        let bought = Self.read(9, Self.month(1, 0, Self.first))
        #expect(Self.owners(Self.link(Self.first, 0), bought) == ["1 0"])
        #expect(Self.owners(Self.link(Self.first, -1), bought) == ["(1 -1)"])
    }

    /// One fold serves many streams, and each has owners of its own.
    @Test func theOwnersOfOneStreamDoNotShowInTheNext() {
        let receipt = {
            var fact = Self.read(0, Self.month(1, 0, Self.third))
            fact.provenance = .receipt
            return fact
        }()
        let streams = [
            [Self.read(61, Self.month(3, 60, Self.first))],
            [Self.read(31, Self.month(2, 30, Self.second))],
            [Self.read(1, Self.month(1, 0, nil))],
            [receipt],
        ]
        var fold = SubscriptionFold(rules: Life().rules)
        for first in streams {
            for second in streams {
                for stream in [first, second] {
                    let events = stream.map { Event(position: 1, fact: $0) }
                    let history = fold.history(of: events)
                    let token = stream[0].transaction?.appAccountToken
                    #expect(history.ownership.map(\.owner) == [token].compactMap(\.self))
                    #expect(history.anomalies.isEmpty)
                }
            }
        }
    }
}
