/// What was told about the consumption of a purchase.
public struct ConsumptionEntry: Hashable, Sendable {
    /// The transaction.
    public var transactionID: String
    /// The simulated instant.
    public var at: Int64
    /// What was told.
    public var body: WireValue
    /// Whether Apple had asked within the twelve hours before.
    public var isTimely: Bool

    var wireValue: WireValue {
        [
            "transactionId": .string(transactionID), "at": .integer(at), "body": body,
            "isTimely": .bool(isTimely),
        ]
    }
}

extension FakeAppStore {
    /// The body as JSON; what is none is answered 400 without a code.
    static func body(_ request: StoreRequest) -> WireValue? {
        guard let value = WireValue(reading: request.body), value.members != nil else { return nil }
        return value
    }

    static let malformed = StoreResponse(status: 400)

    static func isUUID(_ text: String) -> Bool {
        let digits = Array(text.utf8)
        return digits.count == 36
            && digits.indices.allSatisfy { index in
                [8, 13, 18, 23].contains(index)
                    ? digits[index] == UInt8(ascii: "-")
                    : Character(Unicode.Scalar(digits[index])).isHexDigit
            }
    }

    // MARK: - Set App Account Token

    mutating func setAccountToken(
        _ id: String,
        _ request: StoreRequest
    ) throws(StoreError) -> StoreResponse {
        guard let body = Self.body(request) else { return Self.malformed }
        let found = try find(id, orThrow: .invalidTransactionID)
        guard let token = body["appAccountToken"]?.text, Self.isUUID(token) else {
            throw StoreError(4_000_183)
        }
        switch found {
        case .customer: throw StoreError(4_000_048)
        case nil: throw StoreError(4_040_005)
        case .transaction(let place, let transaction):
            let original =
                transaction.oneTime?.originalTransactionID
                ?? subscribers[place].chain.originalTransactionID
            guard id == original else { throw StoreError(4_000_187) }
            switch subscribers[place].chain.ownership {
            case "FAMILY_SHARED": throw StoreError(4_000_185)
            case "ASSIGNED": throw StoreError(4_000_227)
            default: break
            }
            let uuid = uuid()
            if transaction.oneTime == nil {
                subscribers[place].setAccountToken(token.lowercased(), at: now, uuid: uuid)
            } else {
                subscribers[place].setAccountToken(
                    token.lowercased(),
                    ofPurchase: transaction,
                    at: now,
                    uuid: uuid
                )
            }
            agenda.push(Due(date: now, number: place))
            move(to: now)
            return StoreResponse()
        }
    }

    // MARK: - Send Consumption Information

    private static let deliveryStatuses: Set = [
        "DELIVERED", "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM",
        "UNDELIVERED_SERVER_OUTAGE", "UNDELIVERED_OTHER",
    ]

    mutating func sendConsumption(
        _ id: String,
        _ request: StoreRequest
    ) throws(StoreError) -> StoreResponse {
        guard let body = Self.body(request) else { return Self.malformed }
        guard
            case .transaction(let place, let transaction)? = try find(
                id,
                orThrow: .invalidTransactionID
            )
        else {
            throw customers[id] == nil ? .transactionNotFound : StoreError(4_000_048)
        }
        guard body["customerConsented"]?.flag == true else { throw StoreError(4_000_035) }
        guard let status = body["deliveryStatus"]?.text, Self.deliveryStatuses.contains(status)
        else { throw StoreError(4_000_036) }
        guard body["sampleContentProvided"]?.flag != nil else { throw StoreError(4_000_041) }
        let preference = body["refundPreference"]?.text
        if body["refundPreference"] != nil {
            guard let preference,
                ["DECLINE", "GRANT_FULL", "GRANT_PRORATED"].contains(preference)
            else { throw StoreError(4_000_044) }
        }
        switch subscribers[place].chain.ownership {
        case "FAMILY_SHARED": throw StoreError(4_000_185)
        case "ASSIGNED": throw StoreError(4_000_227)
        default: break
        }
        if let percentage = body["consumptionPercentage"] {
            if transaction.oneTime == nil { throw StoreError(4_000_209) }
            // Apple has names for these three; their numbers are not known.
            guard let number = percentage.number, 0...100_000 ~= number,
                number == 0 || status == "DELIVERED",
                preference != "GRANT_PRORATED" || 1..<100_000 ~= number
            else { throw StoreError(4_000_000) }
        }
        consumptions.append(
            ConsumptionEntry(
                transactionID: id,
                at: now,
                body: body,
                isTimely: subscribers[place].wasAskedForConsumption(
                    of: transaction.transactionID,
                    since: now - 12 * Span.hour
                )
            )
        )
        return StoreResponse(status: 202)
    }
}

extension Subscriber {
    /// Whether Apple asked how much of a transaction was consumed, at or after an instant.
    func wasAskedForConsumption(of id: String, since instant: Int64) -> Bool {
        notices[..<next].contains {
            $0.type == "CONSUMPTION_REQUEST" && $0.signedDate >= instant
                && $0.transaction?.transactionID == id
        }
    }
}
