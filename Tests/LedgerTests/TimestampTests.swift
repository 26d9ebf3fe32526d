import Testing

@testable import Ledger

@Suite struct TimestampTests {
    @Test(arguments: [
        ("1970-01-01", 0), ("1970-01-01T00:00:00Z", 0), ("2025-03-26T13:53:30Z", 1_742_997_210_000),
        ("2025-03-26T13:53:30.5Z", 1_742_997_210_500), ("1742997210000", 1_742_997_210_000),
        ("2025-03-26T15:53:30+02:00", 1_742_997_210_000),
        ("2024-02-29T23:59:59.999Z", 1_709_251_199_999),
        ("2025-03-26 13:53Z", 1_742_997_180_000),
    ])
    func anInstantIsReadInEachOfItsForms(_ text: String, _ milliseconds: Int64) {
        #expect(Timestamp(parsing: text)?.milliseconds == milliseconds)
    }

    @Test(arguments: [
        "", "yesterday", "2025-02-30", "2025-13-01", "2025-03-26T25:00:00Z",
        "2025-03-26T13:53:30", "-5", "12:30", "2025-3-1", "99999999999999999",
        "2025-03-26T13:53:30Zx",
    ])
    func whatIsNoInstantIsRefused(_ text: String) {
        #expect(Timestamp(parsing: text) == nil)
    }

    @Test func whatIsWrittenIsReadBack() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            let instant = Timestamp(
                milliseconds: Int64.random(in: 0...253_402_300_799_999, using: &random)
            )
            #expect(Timestamp(parsing: instant.description) == instant)
        }
    }

    @Test func identifiersKeepTheirText() {
        for text in ["7001", "0", "007", "-1", "2000000849164213", "9223372036854775808", "x"] {
            #expect(AppleID(text).description == text)
        }
        #expect(AppleID("7001") == AppleID(7001))
        let id = UniqueID("0F8FAD5B-D9CB-469F-A165-70867728950E")
        #expect(id?.description == "0f8fad5b-d9cb-469f-a165-70867728950e")
        #expect(UniqueID("0f8fad5bd9cb469fa16570867728950e") == nil)
        #expect(UniqueID("") == nil)
    }

    @Test func unknownWordsAreKept() {
        #expect(NotificationType("DID_RENEW") == .didRenew)
        #expect(NotificationType("FUTURE_TYPE").description == "FUTURE_TYPE")
        #expect(Subtype.gracePeriod.description == "GRACE_PERIOD")
        #expect(ProductType("Auto-Renewable Subscription") == .autoRenewable)
    }

    @Test func whatHoldsNothingIsNilAndHasAText() {
        var fact = Fact(kind: .notification, provenance: .jws, factAt: .earliest)
        #expect(fact.signedAt == nil)
        fact.signedAt = .latest
        #expect(fact.signedAt == .latest)
        fact.signedAt = nil
        #expect(fact == Fact(kind: .notification, provenance: .jws, factAt: .earliest))
        var id = Packed<AppleID>(wrappedValue: AppleID("no number"))
        #expect(id.description == "no number")
        id.wrappedValue = nil
        #expect(id.description == "nil" && Packed<Symbol>().description == "nil")
        // A fact without a transaction is printed too.
        #expect("\(fact)".contains("storedTransaction"))
    }
}
