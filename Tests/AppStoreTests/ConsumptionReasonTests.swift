import AppStore
import AppStoreSimulator
import Ledger
import Testing

/// Why a customer wishes for a refund, as Apple's request about the consumption says.
@Suite struct ConsumptionReasonTests {
    private static func document(_ reason: WireValue?) throws -> VerifiedDocument {
        let text = Sample.notification(envelope: {
            $0["notificationType"] = "CONSUMPTION_REQUEST"
            $0["subtype"] = nil
            $0["data"]?["consumptionRequestReason"] = reason
        })
        let verdict = Sample.verifier().verify(text, now: Sample.now)
        return try #require(verdict.document, "\(verdict)")
    }

    @Test(arguments: [
        ("UNINTENDED_PURCHASE", ConsumptionRequestReason.unintendedPurchase),
        ("FULFILLMENT_ISSUE", .fulfillmentIssue),
        ("UNSATISFIED_WITH_PURCHASE", .unsatisfiedWithPurchase), ("LEGAL", .legal),
        ("OTHER", .other),
    ])
    func aReasonOfApplesIsRead(_ text: String, _ reason: ConsumptionRequestReason) throws {
        let document = try Self.document(.string(text))
        #expect(document.fact?.consumptionRequestReason == reason)
        #expect(document.fact?.notificationType == .consumptionRequest)
        #expect(document.decodeAnomalies == [] && !document.isUnrecognised)
        #expect(reason.description == text && reason.unknownText == nil)
    }

    @Test func aReasonThatIsNotKnownYetIsKeptAndCounted() throws {
        for text in ["GIFT_NOT_WANTED", "legal", ""] {
            let document = try Self.document(.string(text))
            #expect(document.fact?.consumptionRequestReason == .unknown(Symbol(text)))
            #expect(document.fact?.consumptionRequestReason?.description == text)
            #expect(document.isUnrecognised, "\(text)")
            #expect(document.decodeAnomalies == [] && document.quarantineReason == nil)
            #expect(document.fact?.status == 1, "the rest is read")
        }
        // A number in the place of a word is a word, as everywhere.
        #expect(try Self.document(7).fact?.consumptionRequestReason == .unknown("7"))
    }

    @Test(arguments: [
        (WireValue.bool(true), "not_text"), (.array(["LEGAL"]), "not_text"),
        (.object([]), "not_text"), (.raw(#""LEGAL\u0000""#), "nul_character"),
        (.raw(#""\ud800""#), "lone_surrogate"),
    ])
    func whatIsNoWordIsNilAndNamed(_ value: WireValue, _ problem: String) throws {
        let document = try Self.document(value)
        #expect(document.fact != nil)
        #expect(document.fact?.consumptionRequestReason == nil)
        #expect(document.decodeAnomalies == ["consumption_request_reason:\(problem)"])
        #expect(!document.isUnrecognised && document.quarantineReason == nil)
    }

    @Test(arguments: [nil, WireValue.null])
    func whereThereIsNoneThereIsNone(_ value: WireValue?) throws {
        let document = try Self.document(value)
        #expect(document.fact?.notificationType == .consumptionRequest)
        #expect(document.fact?.consumptionRequestReason == nil)
        #expect(document.decodeAnomalies == [] && !document.isUnrecognised)
    }

    /// Rows that an older decoder filled lack it, and must be decoded from their evidence again.
    @Test func theEvidenceDecodesToTheSameAndTheDecoderIsANewerOne() throws {
        let document = try Self.document("LEGAL")
        let decoded = FactDecoder.decode(
            kind: .notification,
            payload: document.payload,
            nested: document.nested.map { .init(field: $0.field, payload: $0.payload) }
        )
        #expect(decoded.fact == document.fact)
        #expect(decoded.fact?.consumptionRequestReason == .legal)
        #expect(FactDecoder.version >= 2)
    }
}
