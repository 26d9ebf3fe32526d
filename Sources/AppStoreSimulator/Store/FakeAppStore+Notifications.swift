internal import Crypto

/// How far a reading of the notification history has come.
private struct Page {
    /// The first item that has not been looked at.
    var next: Int
    /// The end of the window, as it was clamped for the first page.
    var end: Int64
    /// When the token ends, in real time.
    var expires: Int64

    init(next: Int, end: Int64, expires: Int64) {
        self.next = next
        self.end = end
        self.expires = expires
    }

    /// Reads a pagination token; nil where it is none, or of another question.
    init?(_ token: String, question: WireValue) {
        guard let bytes = Base64URL.decode(token),
            let text = String(validating: bytes, as: UTF8.self)
        else { return nil }
        let parts = text.split(separator: "|")
        guard parts.count == 5, parts[0] == "p1", let next = Int(parts[1]),
            let end = Int64(parts[2]), let expires = Int64(parts[3]),
            parts[4] == Self.digest(question)
        else { return nil }
        self.init(next: next, end: end, expires: expires)
    }

    func token(of question: WireValue) -> String {
        Base64URL.encode(Array("p1|\(next)|\(end)|\(expires)|\(Self.digest(question))".utf8))
    }

    private static func digest(_ question: WireValue) -> String {
        Base64URL.encode(Array(SHA256.digest(question.bytes).prefix(9)))
    }
}

/// Which types there are, and their subtypes; "" stands for none.
private let subtypes: [String: Set<String>] = [
    "SUBSCRIBED": ["INITIAL_BUY", "RESUBSCRIBE"],
    "DID_RENEW": ["", "BILLING_RECOVERY"],
    "DID_CHANGE_RENEWAL_PREF": [
        "", "UPGRADE", "DOWNGRADE", "INCREASE_QUANTITY", "DECREASE_QUANTITY",
    ],
    "DID_CHANGE_RENEWAL_STATUS": ["", "AUTO_RENEW_ENABLED", "AUTO_RENEW_DISABLED"],
    "OFFER_REDEEMED": ["", "UPGRADE", "DOWNGRADE"],
    "DID_FAIL_TO_RENEW": ["", "GRACE_PERIOD"],
    "GRACE_PERIOD_EXPIRED": [""],
    "EXPIRED": ["", "VOLUNTARY", "BILLING_RETRY", "PRICE_INCREASE", "PRODUCT_NOT_FOR_SALE"],
    "PRICE_INCREASE": ["PENDING", "ACCEPTED"],
    "REFUND": ["", "SEATS"],
    "REFUND_DECLINED": [""],
    "REFUND_REVERSED": [""],
    "REVOKE": [""],
    "CONSUMPTION_REQUEST": [""],
    "RENEWAL_EXTENDED": [""],
    "RENEWAL_EXTENSION": ["SUMMARY", "FAILURE"],
    "ONE_TIME_CHARGE": [""],
    "EXTERNAL_PURCHASE_TOKEN": ["UNREPORTED", "CREATED", "ACTIVE_TOKEN_REMINDER"],
    "RESCIND_CONSENT": [""],
    "METADATA_UPDATE": [""],
    "MIGRATION": [""],
    "PRICE_CHANGE": [""],
    "TEST": [""],
    "UNCLAIM_SEATS": [""],
]

extension FakeAppStore {
    private static let pageMax = 20

    /// What a reading of the notification history is restricted to.
    private struct Filter {
        var type: String?
        var subtype: String?
        var places: Set<Int>?
        var onlyFailures = false
    }

    /// Get Notification History.
    func notificationHistory(
        _ request: StoreRequest,
        at wall: Int64
    ) throws(StoreError) -> StoreResponse {
        guard let body = Self.body(request) else { return Self.malformed }
        guard let start = body["startDate"]?.number, start >= 0 else { throw StoreError(4_000_015) }
        guard let end = body["endDate"]?.number, end >= 0 else { throw StoreError(4_000_016) }
        guard start < end else { throw StoreError(4_000_013) }
        let token = request.value("paginationToken")
        // A window that was open for its first page stays open for the others.
        let span = options.environment.historySpan + (token == nil ? 0 : Span.day)
        guard start >= now - span else { throw StoreError(4_000_012) }
        let filter = try filter(body)
        var page = Page(next: outbox.firstIndex(from: start), end: min(end, now + 1), expires: 0)
        if let token {
            guard let read = Page(token, question: body) else { throw StoreError(4_000_014) }
            guard wall < read.expires else { throw StoreError(4_000_017) }
            page = read
        }
        page.expires = wall + options.pageLife
        var items: [WireValue] = []
        var hasMore = false
        while page.next < outbox.items.count, outbox.items[page.next].signedDate < page.end {
            if takes(page.next, filter) {
                guard items.count < Self.pageMax else {
                    hasMore = true
                    break
                }
                items.append(item(page.next))
            }
            page.next += 1
        }
        // One of Apple's pages says that every answer has the token, another one the contrary.
        let next: WireMember? =
            hasMore ? WireMember("paginationToken", .string(page.token(of: body))) : nil
        return StoreResponse(
            body: .object(
                [
                    WireMember("hasMore", .bool(hasMore)),
                    WireMember("notificationHistory", .array(items)),
                ] + (next.map { [$0] } ?? [])
            )
        )
    }

    private func filter(_ body: WireValue) throws(StoreError) -> Filter {
        var filter = Filter()
        if body["transactionId"] != nil, body["notificationType"] != nil {
            throw StoreError(4_000_019)
        }
        if let type = body["notificationType"] {
            guard let name = type.text, subtypes[name] != nil else { throw StoreError(4_000_018) }
            filter.type = name
        }
        if let subtype = body["notificationSubtype"] {
            guard let name = subtype.text, !name.isEmpty, let type = filter.type,
                subtypes[type]?.contains(name) == true
            else { throw StoreError(4_000_018) }
            filter.subtype = name
        }
        if let id = body["transactionId"] {
            guard let id = id.text else { throw .invalidTransactionID }
            filter.places = Set(try customer(id))
        }
        filter.onlyFailures = body["onlyFailures"]?.flag ?? false
        return filter
    }

    private func takes(_ id: Int, _ filter: Filter) -> Bool {
        let item = outbox.items[id]
        // What has not been tried is not there yet.
        guard !item.attempts.isEmpty else { return false }
        if filter.onlyFailures, item.isDelivered { return false }
        if let places = filter.places {
            guard case .subscription(let place, _) = item.origin, places.contains(place) else {
                return false
            }
        }
        guard let type = filter.type else { return true }
        let notice = notice(of: id)
        return notice.type == type && (filter.subtype == nil || notice.subtype == filter.subtype)
    }

    private func item(_ id: Int) -> WireValue {
        [
            "signedPayload": .string(String(decoding: payload(of: id), as: UTF8.self)),
            "sendAttempts": .array(outbox.items[id].attempts.map(\.wireValue)),
        ]
    }

    // MARK: - Tests

    private static let testLife = 180 * Span.day

    /// Request a Test Notification.
    mutating func requestTest(at wall: Int64) throws(StoreError) -> StoreResponse {
        guard outbox.hasReceiver else { throw StoreError(4_040_007) }
        let notice = Notice(uuid: uuid(), type: "TEST", signedDate: now)
        appNotices.append(notice)
        let id = send(.app(appNotices.count - 1), signedDate: now)
        let token = "\(notice.uuid)_\(wall)"
        tests[token] = id
        return StoreResponse(body: ["testNotificationToken": .string(token)])
    }

    /// Get Test Notification Status.
    func testStatus(_ token: String) throws(StoreError) -> StoreResponse {
        let parts = token.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == 2, Self.isUUID(String(parts[0])), Int64(parts[1]) != nil else {
            throw StoreError(4_000_020)
        }
        guard let id = tests[token], !outbox.items[id].attempts.isEmpty,
            outbox.items[id].signedDate > now - Self.testLife
        else { throw StoreError(4_040_008) }
        return StoreResponse(body: item(id))
    }
}
