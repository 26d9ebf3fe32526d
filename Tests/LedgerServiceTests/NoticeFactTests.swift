import AppStore
import AppStoreSimulator
import Ledger
import Testing

@testable import Benchmarks

/// The comparison of the fold with the simulator skips signing and decoding; that is only allowed
/// where decoding gives the same facts.
@Suite struct NoticeFactTests {
    @Test func aNoticeIsTheFactThatItsPayloadsDecodeTo() throws {
        var compared = 0
        var types: Set<String> = []
        for number in 0..<300 {
            let life = Simulation(
                {
                    var options = Simulation.Options(subscriptions: 300, seed: 5)
                    options.rareFactor = 12
                    return options
                }()
            ).life(number)
            for notice in life.notices {
                let decoded = try Self.decode(notice, of: life.chain)
                #expect(decoded.anomalies.isEmpty && decoded.quarantineReason == nil)
                guard notice.isOfSubscription else { continue }
                #expect(decoded.originalTransactionID == life.chain.originalTransactionID)
                let expected = try #require(Fact(notice, of: life.chain)).withoutDigests
                #expect(decoded.fact?.withoutDigests == expected, "life \(number): \(notice.type)")
                compared += 1
                types.insert(notice.type)
            }
        }
        #expect(compared > 2000)
        #expect(types.count > 18, "\(types.sorted())")
    }

    @Test func unknownWordsAreKeptAndMarked() throws {
        let chain = Chain(originalTransactionID: "1", originalPurchaseDate: 1_700_000_000_000)
        var notice = Notice.initialBuy(of: chain)
        #expect(try !Self.decode(notice, of: chain).isUnrecognised)
        notice.type = "MIGRATE"
        notice.subtype = nil
        #expect(try !Self.decode(notice, of: chain).isUnrecognised, "the changelog's spelling")
        notice.type = "LOYALTY_CREDIT"
        #expect(try Self.decode(notice, of: chain).isUnrecognised)
        notice.type = "METADATA_UPDATE"
        notice.status = 9
        #expect(try Self.decode(notice, of: chain).isUnrecognised)
    }

    private static func decode(_ notice: Notice, of chain: Chain) throws -> FactDecoder.Decoded {
        var parts: [FactDecoder.NestedPayload] = []
        if let transaction = notice.transaction {
            let payload = try JSONDocument(chain.payload(transaction).bytes)
            if notice.form == .answer {
                return FactDecoder.decode(kind: .transaction, payload: payload, nested: [])
            }
            parts.append(.init(field: "signedTransactionInfo", payload: payload))
        }
        if let renewal = notice.renewal {
            let payload = try JSONDocument(chain.payload(renewal).bytes)
            if notice.form == .answer {
                return FactDecoder.decode(kind: .renewalInfo, payload: payload, nested: [])
            }
            parts.append(.init(field: "signedRenewalInfo", payload: payload))
        }
        let envelope = try JSONDocument(chain.payload(notice).bytes)
        return FactDecoder.decode(kind: .notification, payload: envelope, nested: parts)
    }
}

extension Fact {
    /// The same without what only ties are broken by.
    fileprivate var withoutDigests: Fact {
        var fact = self
        fact.transaction?.digest = 0
        fact.renewal?.digest = 0
        return fact
    }
}
