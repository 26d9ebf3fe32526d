internal import Crypto

/// A place in a list that grows at its end, as `revision` tells it.
private struct Cursor: Comparable {
    var date: Int64
    var id: String

    static func < (one: Cursor, other: Cursor) -> Bool {
        (one.date, one.id) < (other.date, other.id)
    }

    /// Reads a revision; nil where it is none, or of another question.
    init?(revision: String, question: String) {
        guard let bytes = Base64URL.decode(revision),
            let text = String(validating: bytes, as: UTF8.self)
        else { return nil }
        let parts = text.split(separator: "|", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0] == "r1", let date = Int64(parts[1]),
            parts[3] == Self.digest(question)
        else { return nil }
        self.init(date: date, id: String(parts[2]))
    }

    init(date: Int64, id: String) {
        self.date = date
        self.id = id
    }

    func revision(of question: String) -> String {
        Base64URL.encode(Array("r1|\(date)|\(id)|\(Self.digest(question))".utf8))
    }

    private static func digest(_ question: String) -> String {
        Base64URL.encode(Array(SHA256.digest(Array(question.utf8)).prefix(9)))
    }
}

/// What a history is asked for.
private struct HistoryFilter {
    var start: Int64?
    var end: Int64?
    var products: Set<String> = []
    var groups: Set<String> = []
    var types: Set<String> = []
    var ownership: String?
    var isRevoked: Bool?
    var isDescending = false

    /// Apple's words of this parameter, and those of the payload.
    private static let typeNames = [
        "AUTO_RENEWABLE": "Auto-Renewable Subscription",
        "NON_RENEWABLE": "Non-Renewing Subscription",
        "CONSUMABLE": "Consumable", "NON_CONSUMABLE": "Non-Consumable",
    ]

    init(_ request: StoreRequest) throws(StoreError) {
        start = try Self.date(request, "startDate", StoreError(4_000_015))
        end = try Self.date(request, "endDate", StoreError(4_000_016))
        if let sort = request.value("sort") {
            guard ["ASCENDING", "DESCENDING"].contains(sort) else { throw StoreError(4_000_021) }
            isDescending = sort == "DESCENDING"
        }
        for type in request.values("productType") {
            guard let name = Self.typeNames[type] else { throw StoreError(4_000_022) }
            types.insert(name)
        }
        for product in request.values("productId") {
            guard !product.isEmpty, !product.contains(" ") else { throw StoreError(4_000_023) }
            products.insert(product)
        }
        for group in request.values("subscriptionGroupIdentifier") {
            guard !group.isEmpty, group.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
                throw StoreError(4_000_024)
            }
            groups.insert(group)
        }
        if let text = request.value("excludeRevoked") {
            guard let excludes = Bool(text) else { throw StoreError(4_000_025) }
            if excludes { isRevoked = false }
        }
        if let text = request.value("inAppOwnershipType") {
            guard ["PURCHASED", "FAMILY_SHARED", "ASSIGNED"].contains(text) else {
                throw StoreError(4_000_026)
            }
            ownership = text
        }
        if let text = request.value("revoked") {
            guard let revoked = Bool(text) else { throw StoreError(4_000_030) }
            isRevoked = revoked
        }
    }

    private static func date(
        _ request: StoreRequest,
        _ name: String,
        _ error: StoreError
    ) throws(StoreError) -> Int64? {
        guard let text = request.value(name) else { return nil }
        guard let date = Int64(text), date >= 0 else { throw error }
        return date
    }

    func takes(_ transaction: NoticeTransaction, of chain: Chain) -> Bool {
        if let start, transaction.purchaseDate < start { return false }
        if let end, transaction.purchaseDate >= end { return false }
        if !products.isEmpty, !products.contains(transaction.productID) { return false }
        let group = transaction.oneTime == nil ? chain.groupID : ""
        if !groups.isEmpty, !groups.contains(group) { return false }
        let type = transaction.oneTime?.type ?? "Auto-Renewable Subscription"
        if !types.isEmpty, !types.contains(type) { return false }
        if let ownership, ownership != chain.ownership { return false }
        if let isRevoked, isRevoked != (transaction.revocation != nil) { return false }
        return true
    }
}

extension FakeAppStore {
    private static let pageMax = 20

    private struct Entry {
        var cursor: Cursor
        var place: Int
        var transaction: NoticeTransaction
    }

    func history(_ id: String, _ request: StoreRequest) throws(StoreError) -> StoreResponse {
        let filter = try HistoryFilter(request)
        var entries: [Entry] = []
        for place in try customer(id) {
            let chain = subscribers[place].chain
            for known in subscribers[place].standing(at: now).transactions
            where filter.takes(known.transaction, of: chain) {
                let cursor = Cursor(date: known.modified, id: known.transaction.transactionID)
                entries.append(Entry(cursor: cursor, place: place, transaction: known.transaction))
            }
        }
        return try page(entries, of: id, request, isDescending: filter.isDescending)
    }

    func refundHistory(_ id: String, _ request: StoreRequest) throws(StoreError) -> StoreResponse {
        var entries: [Entry] = []
        for place in try customer(id) {
            for known in subscribers[place].standing(at: now).transactions {
                let transaction = known.transaction
                // What the family lost was no refund.
                guard let revocation = transaction.revocation,
                    revocation.type.hasPrefix("REFUND")
                else { continue }
                let cursor = Cursor(date: revocation.date, id: transaction.transactionID)
                entries.append(Entry(cursor: cursor, place: place, transaction: transaction))
            }
        }
        return try page(entries, of: id, request, isDescending: false, hasHead: false)
    }

    private func page(
        _ entries: [Entry],
        of id: String,
        _ request: StoreRequest,
        isDescending: Bool,
        hasHead: Bool = true
    ) throws(StoreError) -> StoreResponse {
        // The other parameters must stay what they were.
        let parameters = request.query.filter { $0.name != "revision" }
            .map { "\($0.name)=\($0.value)" }.sorted()
        let question = ([request.path[2], id] + parameters).joined(separator: "&")
        var last: Cursor?
        if let revision = request.value("revision") {
            last = Cursor(revision: revision, question: question)
            if last == nil { throw StoreError(4_000_005) }
        }
        var rest = entries.sorted { isDescending ? $0.cursor > $1.cursor : $0.cursor < $1.cursor }
        if let last {
            rest = rest.filter { isDescending ? $0.cursor < last : $0.cursor > last }
        }
        let page = rest.prefix(Self.pageMax)
        let end = page.last?.cursor ?? last ?? Cursor(date: 0, id: "")
        return StoreResponse(
            body: .object(
                (hasHead ? head() : []) + [
                    WireMember("hasMore", .bool(rest.count > page.count)),
                    WireMember("revision", .string(end.revision(of: question))),
                    WireMember(
                        "signedTransactions",
                        .array(page.map { signed($0.transaction, of: $0.place) })
                    ),
                ]
            )
        )
    }
}
