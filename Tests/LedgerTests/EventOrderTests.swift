import Testing

@testable import Ledger

/// The total order of facts and which version counts (lifecycle 5.3, `docs/state-machine.md`).
@Suite struct EventOrderTests {
    private static let at = Life.day(10)

    private static func fact(
        _ provenance: Provenance = .jws,
        at: Timestamp = at,
        signed: Timestamp? = nil,
        change: (inout Fact) -> Void = { _ in }
    ) -> Fact {
        var fact = Fact(kind: .notification, provenance: provenance, factAt: at)
        fact.signedAt = signed
        change(&fact)
        return fact
    }

    private static func transaction(
        _ digest: UInt64,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        var fact = TransactionFact(transactionID: AppleID(1), signedDate: at, digest: digest)
        fact.expiresDate = Life.day(30)
        change(&fact)
        return fact
    }

    private static func renewal(_ digest: UInt64, until day: Double? = 30) -> RenewalFact {
        var fact = RenewalFact(signedDate: at, digest: digest)
        fact.renewalDate = day.map(Life.day)
        return fact
    }

    /// Facts in their order, each after the one before it for one reason only.
    private static let inOrder: [Fact] = [
        fact(at: Life.day(9), signed: Life.day(40)),
        // The envelope's signature, which is the fact's own where there is none.
        fact(signed: Life.day(9)), fact(.operator), fact(.receipt), fact(.tls), fact(),
        // What carries less comes first.
        fact { $0.renewal = renewal(7, until: nil) },
        fact { $0.renewal = renewal(6, until: nil) },
        fact { $0.renewal = renewal(10, until: 20) },
        fact { $0.renewal = renewal(9, until: 30) },
        fact { $0.renewal = renewal(8, until: 30) },
        // Of one millisecond the lower digest counts, then the longer, the upgraded, the revoked.
        fact { $0.transaction = transaction(1) { $0.expiresDate = nil } },
        fact { $0.transaction = transaction(2) { $0.expiresDate = Life.day(20) } },
        fact { $0.transaction = transaction(9) },
        fact { $0.transaction = transaction(8) },
        fact {
            $0.transaction = transaction(8)
            $0.renewal = renewal(9)
        },
        fact {
            $0.transaction = transaction(8)
            $0.renewal = renewal(8)
        },
        fact { $0.transaction = transaction(10) { $0.isUpgraded = true } },
        fact { $0.transaction = transaction(11) { $0.revocationDate = Life.day(12) } },
        fact(signed: Life.day(11)), fact(at: Life.day(11), signed: Life.day(11)),
    ]

    private static func precedes(_ left: Fact, _ right: Fact, positions: (Int64, Int64)) -> Bool {
        var result = false
        let events = [
            Event(position: positions.0, fact: left), Event(position: positions.1, fact: right),
        ]
        Events.lend(events) { result = EventOrder.precedes($0, 0, 1) }
        return result
    }

    @Test func everyFactHasItsPlaceWhateverItsPosition() {
        for (place, fact) in Self.inOrder.enumerated() {
            for (later, other) in Self.inOrder.enumerated().dropFirst(place + 1) {
                for positions in [(1, 2), (2, 1)] as [(Int64, Int64)] {
                    #expect(
                        Self.precedes(fact, other, positions: positions),
                        "\(place) before \(later)"
                    )
                    #expect(
                        !Self.precedes(other, fact, positions: positions),
                        "\(later) after \(place)"
                    )
                }
            }
        }
    }

    @Test func equalFactsFollowTheirPositions() {
        for fact in Self.inOrder {
            #expect(Self.precedes(fact, fact, positions: (1, 2)))
            #expect(!Self.precedes(fact, fact, positions: (2, 1)))
            #expect(!Self.precedes(fact, fact, positions: (1, 1)))
        }
    }

    /// What differs only in its words has an order by them, and so none by arrival.
    @Test(
        arguments: [
            { $0.kind = .subscriptionStatus }, { $0.notificationType = .didRenew },
            { $0.subtype = .voluntary }, { $0.status = 3 },
        ] as [@Sendable (inout Fact) -> Void]
    )
    func differentWordsHaveAnOrderWhateverThePosition(_ change: @Sendable (inout Fact) -> Void) {
        let (plain, other) = (Self.fact(), Self.fact(change: change))
        let usual = Self.precedes(plain, other, positions: (1, 2))
        #expect(Self.precedes(plain, other, positions: (2, 1)) == usual)
        #expect(Self.precedes(other, plain, positions: (1, 2)) != usual)
        #expect(Self.precedes(other, plain, positions: (2, 1)) != usual)
    }

    // MARK: - Versions

    private static func period(_ change: (inout Period) -> Void) -> Period {
        var period = Period.sample
        (period.signedDate, period.signedAt) = (at, at)
        (period.digest, period.position) = (5, 5)
        period.expiresDate = Life.day(30)
        change(&period)
        return period
    }

    /// Versions of one transaction, each of which counts more than the one before it.
    private static let versions: [Period] = [
        // Nothing unsigned outranks what Apple signed, however new.
        period { ($0.provenance, $0.signedDate) = (.receipt, Life.day(20)) },
        period { ($0.provenance, $0.signedDate) = (.tls, Life.day(20)) },
        period { ($0.provenance, $0.signedDate) = (.receipt, Life.day(21)) },
        period { $0.signedDate = Life.day(9) },
        period { $0.signedAt = Life.day(9) },
        period { ($0.expiresDate, $0.digest) = (nil, 1) },
        period { ($0.expiresDate, $0.digest) = (Life.day(29), 2) },
        period { $0.digest = 6 }, period { $0.position = 6 }, period { _ in },
        period { $0.digest = 4 },
        period { ($0.isUpgraded, $0.digest) = (true, 9) },
        period { ($0.revocation, $0.digest) = (Life.day(12), 10) },
        period { $0.signedAt = Life.day(11) }, period { $0.signedDate = Life.day(11) },
    ]

    @Test func everyVersionCountsMoreThanThoseBeforeIt() {
        for (place, version) in Self.versions.enumerated() {
            #expect(!EventOrder.wins(version, over: version), "\(place)")
            for (later, other) in Self.versions.enumerated().dropFirst(place + 1) {
                #expect(EventOrder.wins(other, over: version), "\(later) over \(place)")
                #expect(!EventOrder.wins(version, over: other), "\(place) over \(later)")
            }
        }
    }

    @Test func renewalInfosCountByTheSameRules() {
        func event(
            _ position: Int64,
            _ provenance: Provenance = .jws,
            signedDate: Double = 10,
            signedAt: Double? = nil,
            until: Double = 30,
            digest: UInt64 = 5
        ) -> Event {
            var fact = Self.fact(provenance, signed: signedAt.map(Life.day))
            fact.renewal = Self.renewal(digest, until: until)
            fact.renewal?.signedDate = Life.day(signedDate)
            return Event(position: position, fact: fact)
        }
        let events = [
            event(1, .receipt, signedDate: 20), event(2, .tls, signedDate: 20),
            event(3, signedDate: 9), event(4, signedAt: 9), event(5, until: 29, digest: 1),
            event(6, digest: 6), event(8), event(7), event(9, digest: 4), event(10, signedAt: 11),
            event(11, signedDate: 11),
        ]
        Events.lend(events) { events in
            func record(_ place: Int) -> RenewalRecord {
                var record = RenewalRecord.sample
                record.read(events, place, EventHead(events, place))
                return record
            }
            for place in 0..<events.count {
                #expect(!record(place).wins(over: record(place), events))
                for later in (place + 1)..<max(place + 1, events.count) {
                    #expect(record(later).wins(over: record(place), events), "\(later), \(place)")
                    #expect(!record(place).wins(over: record(later), events), "\(place), \(later)")
                }
            }
        }
    }
}
