internal import Crypto

extension FakeAppStore {
    /// What an id in a path stands for.
    enum Found {
        /// An `appTransactionId`.
        case customer(String)
        /// A transaction, or the subscription that begins with it.
        case transaction(subscriber: Int, NoticeTransaction)
    }

    /// Finds an id among what has come to pass; nil where there is none.
    ///
    /// - Throws: the error given, where the text cannot be an id at all.
    func find(_ id: String, orThrow error: StoreError) throws(StoreError) -> Found? {
        guard 1...20 ~= id.utf8.count, id.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else {
            throw error
        }
        if let places = customers[id], places.contains(where: { subscribers[$0].next > 0 }) {
            return .customer(id)
        }
        let first = LifeWriter.transactionID(options.firstNumber, 0)
        guard let number = Int(id), let base = Int(first), number >= base else { return nil }
        let place = (number - base) / 1000
        guard subscribers.indices ~= place, subscribers[place].next > 0 else { return nil }
        let standing = subscribers[place].standing(at: now)
        if let transaction = standing.transaction(id) {
            return .transaction(subscriber: place, transaction)
        }
        // Whoever joined a family late has an original id that is no transaction's.
        guard id == subscribers[place].chain.originalTransactionID else { return nil }
        return standing.current.map { .transaction(subscriber: place, $0) }
    }

    /// Finds the customer of any id; an unknown one is an error.
    func customer(_ id: String) throws(StoreError) -> [Int] {
        switch try find(id, orThrow: .invalidTransactionID) {
        case .customer(let id): return customers[id] ?? []
        case .transaction(let place, _):
            return customers[subscribers[place].chain.appTransactionID] ?? []
        case nil: throw .transactionNotFound
        }
    }

    /// The members that most answers begin with.
    func head() -> [WireMember] {
        var members: [WireMember] = []
        if options.environment == .production {
            members.append(WireMember("appAppleId", .integer(options.appAppleID)))
        }
        members.append(WireMember("bundleId", .string(options.bundleID)))
        members.append(WireMember("environment", .string(options.environment.rawValue)))
        return members
    }

    /// A transaction, signed now.
    func signed(_ transaction: NoticeTransaction, of place: Int) -> WireValue {
        var transaction = transaction
        transaction.signedDate = now
        return authority.signer(at: now).text(subscribers[place].chain.payload(transaction))
    }

    private func signed(_ renewal: NoticeRenewal, of place: Int) -> WireValue {
        var renewal = renewal
        renewal.signedDate = now
        return authority.signer(at: now).text(subscribers[place].chain.payload(renewal))
    }

    // MARK: - Statuses

    func statuses(_ id: String, _ request: StoreRequest) throws(StoreError) -> StoreResponse {
        let places = try customer(id)
        var wanted: Set<Int> = []
        for text in request.values("status") {
            guard let status = Int(text), 1...5 ~= status else { throw StoreError(4_000_031) }
            wanted.insert(status)
        }
        var groups: [(id: String, items: [WireValue])] = []
        for place in places {
            let standing = subscribers[place].standing(at: now)
            guard let current = standing.current, let renewal = standing.renewal,
                wanted.isEmpty || wanted.contains(standing.status)
            else { continue }
            let chain = subscribers[place].chain
            let item: WireValue = [
                "originalTransactionId": .string(chain.originalTransactionID),
                "status": .integer(Int64(standing.status)),
                "signedTransactionInfo": signed(current, of: place),
                "signedRenewalInfo": signed(renewal, of: place),
            ]
            if let group = groups.firstIndex(where: { $0.id == chain.groupID }) {
                groups[group].items.append(item)
            } else {
                groups.append((chain.groupID, [item]))
            }
        }
        let data = groups.map { group -> WireValue in
            [
                "subscriptionGroupIdentifier": .string(group.id),
                "lastTransactions": .array(group.items),
            ]
        }
        return StoreResponse(body: .object(head() + [WireMember("data", .array(data))]))
    }

    // MARK: - Single transactions

    func transactionInfo(_ id: String) throws(StoreError) -> StoreResponse {
        switch try find(id, orThrow: .invalidTransactionID) {
        case .customer: throw StoreError(4_000_048)
        case .transaction(let place, let transaction):
            return StoreResponse(body: ["signedTransactionInfo": signed(transaction, of: place)])
        case nil: throw .transactionNotFound
        }
    }

    func appTransactionInfo(_ id: String) throws(StoreError) -> StoreResponse {
        guard let place = try customer(id).first else { throw .transactionNotFound }
        let payload = subscribers[place].chain.appTransaction(signedDate: now)
        return StoreResponse(
            body: ["signedAppTransactionInfo": authority.signer(at: now).text(payload)]
        )
    }

    // MARK: - Orders

    /// The order id that a customer finds in the receipt of a transaction.
    public static func orderID(ofTransaction id: String) -> String? {
        guard let number = Int64(id), number > 0 else { return nil }
        return "MW" + String(number, radix: 36, uppercase: true)
    }

    func order(_ id: String) throws(StoreError) -> StoreResponse {
        // Apple does not offer this one in the sandbox; what it answers there is not documented.
        guard options.environment == .production else { return StoreResponse(status: 404) }
        guard id.utf8.count <= 64,
            id.utf8.allSatisfy({ 0x30...0x39 ~= $0 || 0x41...0x5A ~= $0 })
        else { throw StoreError(4_000_000) }
        let invalid = StoreResponse(body: ["status": 1])
        guard id.hasPrefix("MW"), let number = Int64(id.dropFirst(2), radix: 36),
            case .transaction(let place, let transaction)? = try find(
                String(number),
                orThrow: StoreError(4_000_000)
            ),
            transaction.transactionID == String(number)
        else { return invalid }
        return StoreResponse(
            body: ["status": 0, "signedTransactions": .array([signed(transaction, of: place)])]
        )
    }
}
