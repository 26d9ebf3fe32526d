import AppStore
import AppStoreSimulator
import Ledger
import Testing

@Suite struct FactDecoderTests {
    private func document(_ text: [UInt8]) throws -> VerifiedDocument {
        let verdict = Sample.verifier().verify(text, now: Sample.now)
        return try #require(verdict.document, "\(verdict)")
    }

    @Test func aNotificationBecomesAFact() throws {
        let document = try document(Sample.notification())
        let fact = try #require(document.fact)
        #expect(fact.kind == .notification)
        #expect(fact.provenance == .jws)
        #expect(fact.notificationType == .subscribed)
        #expect(fact.subtype == .initialBuy)
        #expect(fact.status == 1)
        #expect(fact.signedAt?.milliseconds == Sample.notice.signedDate)
        let notice = try #require(Sample.notice.transaction)
        #expect(fact.factAt.milliseconds == notice.signedDate)
        let transaction = try #require(fact.transaction)
        #expect(transaction.transactionID == AppleID(notice.transactionID))
        #expect(transaction.productID == "premium.monthly")
        #expect(transaction.productType == .autoRenewable)
        #expect(transaction.expiresDate?.milliseconds == notice.expiresDate)
        #expect(transaction.ownership == .purchased)
        #expect(transaction.reason == .purchase)
        #expect(transaction.quantity == 1)
        #expect(transaction.price == notice.price)
        #expect(transaction.currency == "USD")
        #expect(transaction.storefront == "USA")
        #expect(!transaction.isUpgraded)
        let renewal = try #require(fact.renewal)
        #expect(renewal.autoRenewStatus == 1)
        #expect(renewal.renewalDate?.milliseconds == notice.expiresDate)
        #expect(renewal.expirationIntent == nil)
        #expect(renewal.isInBillingRetryPeriod == nil)
    }

    @Test func theEvidenceDecodesToTheSameFact() throws {
        let document = try document(Sample.notification())
        let decoded = FactDecoder.decode(
            kind: .notification,
            payload: document.payload,
            nested: document.nested.map { .init(field: $0.field, payload: $0.payload) }
        )
        #expect(decoded.fact == document.fact)
        let alone = try self.document(try Sample.transaction())
        let again = FactDecoder.decode(kind: .transaction, payload: alone.payload, nested: [])
        #expect(again.fact == alone.fact)
        #expect(alone.fact?.transaction == document.fact?.transaction)
    }

    @Test func numbersAndBooleansMayBeTexts() throws {
        let plain = try document(Sample.notification())
        let spelled = try document(
            Sample.notification(
                transaction: {
                    $0["transactionId"] = 2_000_000_900_000_001
                    $0["originalTransactionId"] = 2_000_000_900_000_001
                    $0["purchaseDate"] = .string(String(Sample.start))
                    $0["price"] = "4999000000"
                    $0["isUpgraded"] = "true"
                    $0["quantity"] = "1"
                },
                renewal: {
                    $0["autoRenewStatus"] = "1"
                    $0["isInBillingRetryPeriod"] = "false"
                },
                envelope: { $0["data"]?["status"] = "1" }
            )
        )
        #expect(spelled.decodeAnomalies == [])
        #expect(spelled.originalTransactionID == plain.originalTransactionID)
        let transaction = try #require(spelled.fact?.transaction)
        #expect(transaction.transactionID == plain.fact?.transaction?.transactionID)
        #expect(transaction.purchaseDate == plain.fact?.transaction?.purchaseDate)
        #expect(transaction.price == 4_999_000_000)
        #expect(transaction.isUpgraded)
        #expect(spelled.fact?.renewal?.autoRenewStatus == 1)
        #expect(spelled.fact?.renewal?.isInBillingRetryPeriod == false)
        #expect(spelled.fact?.status == 1)
    }

    @Test(arguments: [
        ("expiresDate", WireValue.integer(-1), "expires_date:out_of_range"),
        ("expiresDate", .integer(253_402_300_800_000), "expires_date:out_of_range"),
        ("expiresDate", .raw("1e400"), "expires_date:overflow"),
        ("expiresDate", .raw("1.50"), "expires_date:not_an_integer"),
        ("expiresDate", "soon", "expires_date:not_an_integer"),
        ("expiresDate", .array([]), "expires_date:not_an_integer"),
        ("price", .raw("9223372036854775808"), "price:overflow"),
        ("quantity", .integer(4_000_000_000), "quantity:overflow"),
        ("productId", .raw(#""a\u0000b""#), "product_id:nul_character"),
        ("productId", .raw(#""\ud800""#), "product_id:lone_surrogate"),
        ("productId", true, "product_id:not_text"),
        ("appAccountToken", "no uuid", "app_account_token:not_a_uuid"),
        ("isUpgraded", "perhaps", "is_upgraded:not_a_boolean"),
        ("commitmentInfo", "text", "commitment_info:not_an_object"),
        ("webOrderLineItemId", .raw(#""\u0000""#), "web_order_line_item_id:nul_character"),
    ])
    func whatCannotBeReadIsNilAndNamed(
        _ field: String,
        _ value: WireValue,
        _ anomaly: String
    ) throws {
        let document = try document(Sample.notification(transaction: { $0[field] = value }))
        #expect(document.decodeAnomalies == [anomaly])
        let fact = try #require(document.fact?.transaction)
        let original = try #require(try self.document(Sample.notification()).fact?.transaction)
        var expected = original
        expected.digest = fact.digest
        switch field {
        case "expiresDate": expected.expiresDate = nil
        case "price": expected.price = nil
        case "quantity": expected.quantity = nil
        case "productId": expected.productID = nil
        case "webOrderLineItemId": expected.webOrderLineItemID = nil
        default: break
        }
        #expect(fact == expected)
    }

    @Test func minusZeroIsZeroAndNullAndEmptyTokensAreAbsent() throws {
        let document = try document(
            Sample.notification(transaction: {
                $0["price"] = .raw("-0")
                $0["offerType"] = .null
                $0["appAccountToken"] = ""
            })
        )
        #expect(document.fact?.transaction?.price == 0)
        #expect(document.fact?.transaction?.offerType == nil)
        #expect(document.fact?.transaction?.appAccountToken == nil)
        #expect(document.decodeAnomalies == [])
        #expect(!document.isUnrecognised)
    }

    @Test func unknownValuesAreKeptAndCounted() throws {
        let future = try document(
            Sample.notification(envelope: {
                $0["notificationType"] = "FUTURE_TYPE"
                $0["subtype"] = "FUTURE_SUB"
            })
        )
        #expect(future.isUnrecognised)
        #expect(future.notificationType == "FUTURE_TYPE")
        #expect(future.fact?.notificationType == .unknown("FUTURE_TYPE"))
        #expect(future.fact?.subtype == .unknown("FUTURE_SUB"))
        #expect(future.fact?.transaction != nil)
        #expect(future.quarantineReason == nil)

        let changes: [(String, WireValue)] = [
            ("offerType", 9), ("inAppOwnershipType", "LENT"), ("transactionReason", "GIFT"),
            ("type", "Rental"), ("offerDiscountType", "HALF"), ("revocationReason", 7),
            ("revocationType", "REFUND_HALF"), ("billingPlanType", "WEEKLY"),
        ]
        for (field, value) in changes {
            let document = try document(Sample.notification(transaction: { $0[field] = value }))
            #expect(document.isUnrecognised, "\(field)")
            #expect(document.decodeAnomalies == [])
        }
        let status = try document(Sample.notification(envelope: { $0["data"]?["status"] = 42 }))
        #expect(status.isUnrecognised)
        #expect(status.fact?.status == 42)
        let extra = try document(Sample.notification(transaction: { $0["newField"] = "x" }))
        #expect(!extra.isUnrecognised)
        #expect(extra.nested.first?.payload["newField"]?.text == "x")
    }

    @Test func aFactIsOrderedByItsInnermostSignedDate() throws {
        let both = try document(
            Sample.notification(renewal: {
                $0["signedDate"] = .integer(Sample.start + 50)
            })
        )
        #expect(both.fact?.factAt.milliseconds == Sample.notice.transaction?.signedDate)
        let renewalOnly = try document(
            Sample.notification(
                renewal: { $0["signedDate"] = .integer(Sample.start + 50) },
                envelope: { $0["data"]?["signedTransactionInfo"] = nil }
            )
        )
        #expect(renewalOnly.fact?.factAt.milliseconds == Sample.start + 50)
        #expect(renewalOnly.originalTransactionID == Sample.chain.originalTransactionID)
    }

    @Test func anyJSONDecodesWithoutATrap() throws {
        var random = TestRandom(state: 5)
        let values = [
            "null", "true", "[]", "{}", "\"\"", "\"x\"", "\"\\ud800\"", "\"\\u0000\"", "-1",
            "1e400",
            "1.5", "99999999999999999999", "\"99999999999999999999\"", "[[1]]", "{\"a\":1}",
        ]
        let transaction = Sample.chain.payload(try #require(Sample.notice.transaction))
        let renewal = Sample.chain.payload(try #require(Sample.notice.renewal))
        for kind in DocumentKind.allCases {
            for base in [transaction, renewal] {
                for _ in 0..<300 {
                    guard case .object(var members) = base else { continue }
                    for place in members.indices where random.next() % 4 == 0 {
                        members[place].value = .raw(values[Int(random.next() % 15)])
                    }
                    let payload = try JSONDocument(WireValue.object(members).bytes)
                    let decoded = FactDecoder.decode(kind: kind, payload: payload, nested: [])
                    #expect(decoded.fact == nil || decoded.originalTransactionID != nil)
                }
            }
        }
    }
}
