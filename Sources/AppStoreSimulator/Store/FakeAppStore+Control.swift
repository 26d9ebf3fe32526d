/// What whoever runs a fake App Store can see and do beside Apple's API.
extension FakeAppStore {
    /// The path of the control endpoints.
    public static let controlPath = ["simulator", "v1"]

    /// The control endpoints' methods and paths below `controlPath`; `*` is an id.
    public static let controlRoutes: [(method: String, path: [String])] = [
        ("GET", ["state"]),
        ("GET", ["subscriptions"]),
        ("GET", ["subscriptions", "*"]),
        ("POST", ["subscriptions", "*", "refund"]),
        ("GET", ["extensions"]),
        ("GET", ["mass-extensions"]),
        ("GET", ["deliveries"]),
        ("GET", ["consumption"]),
        ("PUT", ["faults"]),
        ("POST", ["faults"]),
    ]

    private static let pageMax = 1000

    private struct Refusal: Error {
        var status = 400
        var message: String
    }

    /// Answers a control request; its path begins behind `controlPath`.
    public mutating func control(_ request: StoreRequest) -> StoreResponse {
        do throws(Refusal) {
            switch (request.method, request.path.count, request.path.first) {
            case ("GET", 1, "state"): return StoreResponse(body: state)
            case ("GET", 1, "subscriptions"): return try subscriptions(request)
            case ("GET", 2, "subscriptions"): return try subscription(request.path[1])
            case ("POST", 3, "subscriptions") where request.path[2] == "refund":
                return try refund(request.path[1], request)
            case ("GET", 1, "extensions"):
                return try page(request, "extensions", extensions.count) { store, place in
                    store.extensions[place].wireValue
                }
            case ("GET", 1, "mass-extensions"):
                return try page(request, "massExtensions", massRequests.count) { store, place in
                    store.massRequests[place].wireValue
                }
            case ("GET", 1, "deliveries"):
                return try page(request, "deliveries", outbox.items.count) { store, place in
                    store.delivery(place)
                }
            case ("GET", 1, "consumption"):
                return try page(request, "consumption", consumptions.count) { store, place in
                    store.consumptions[place].wireValue
                }
            case ("PUT", 1, "faults"): return try setFaults(request)
            case ("POST", 1, "faults"): return try addFault(request)
            default: throw Refusal(status: 404, message: "there is no such control endpoint")
            }
        } catch {
            var response = StoreResponse(status: error.status)
            response.body = ["error": .string(error.message)]
            return response
        }
    }

    /// Replaces the plan of what goes wrong; notifications that were sent keep their fate.
    public mutating func setFaults(_ plan: FaultPlan) {
        faults = plan
        faultRandom = Self.faultRandom(plan)
    }

    /// Adds a rule to the plan.
    public mutating func addFault(_ rule: FaultPlan.RequestFault) { faults.requests.append(rule) }

    /// Refunds the running period of a subscription now, and ends its script; whom it gave access
    /// loses it.
    ///
    /// - Returns: the `notificationUUID` of the news; nil where there is nothing to refund.
    public mutating func refund(_ originalTransactionID: String, reason: Int = 0) -> String? {
        guard let place = place(of: originalTransactionID), subscribers[place].payer == nil else {
            return nil
        }
        let uuid = uuid()
        let revocation = NoticeTransaction.Revocation(date: now, reason: reason)
        guard subscribers[place].revoke("REFUND", revocation, uuid: uuid) else { return nil }
        agenda.push(Due(date: now, number: place))
        for member in members(of: place) {
            let isFamily = subscribers[member].chain.ownership == "FAMILY_SHARED"
            let revocation = NoticeTransaction.Revocation(
                date: now,
                type: isFamily ? "FAMILY_REVOKE" : "ASSIGNMENT_REVOKE",
                percentage: nil
            )
            let uuid = self.uuid()
            guard subscribers[member].revoke("REVOKE", revocation, uuid: uuid) else { continue }
            agenda.push(Due(date: now, number: member))
        }
        move(to: now)
        return uuid
    }

    /// One subscription as it stands, for tests and for looking around.
    public struct Overview: Hashable, Sendable {
        /// Apple's `originalTransactionId`.
        public var originalTransactionID: String
        /// Apple's `appTransactionId`.
        public var appTransactionID: String
        /// Apple's `inAppOwnershipType`.
        public var ownership: String
        /// Apple's `storefront`.
        public var storefront: String
        /// Apple's status, 1…5.
        public var status: Int
        /// The scripted state.
        public var state: TruthCondition.State?
        /// The newest period.
        public var transaction: NoticeTransaction?
        /// How many transactions there are.
        public var transactions: Int
        /// The error that an extension would meet with now.
        public var extensionError: Int64?
        /// How many extensions its customer had within a year.
        public var extensionsUsed: Int
    }

    /// All subscriptions that have begun, in the order of their numbers.
    public var overviews: [Overview] {
        subscribers.indices.filter { subscribers[$0].next > 0 }.map(overview)
    }

    /// One of them; nil where there is none of that id.
    public func overview(of originalTransactionID: String) -> Overview? {
        place(of: originalTransactionID).map(overview)
    }

    private func overview(_ place: Int) -> Overview {
        let subscriber = subscribers[place]
        let standing = subscriber.standing(at: now)
        let year = now - Self.extensionYear
        let chain = subscriber.chain
        return Overview(
            originalTransactionID: chain.originalTransactionID,
            appTransactionID: chain.appTransactionID,
            ownership: chain.ownership,
            storefront: chain.storefront.code,
            status: standing.status,
            state: subscriber.interval(at: now)?.condition.state,
            transaction: standing.current,
            transactions: standing.transactions.count,
            extensionError: refusal(of: place)?.code,
            extensionsUsed: granted[chain.appTransactionID, default: []].filter { $0 > year }.count
        )
    }

    private func place(of id: String) -> Int? {
        guard case .transaction(let place, _)? = try? find(id, orThrow: .invalidTransactionID),
            subscribers[place].chain.originalTransactionID == id
        else { return nil }
        return place
    }

    // MARK: - Answers

    private var state: WireValue {
        var states: [Int: Int64] = [:]
        for place in subscribers.indices where subscribers[place].next > 0 {
            states[subscribers[place].standing(at: now).status, default: 0] += 1
        }
        var requests: [WireMember] = []
        for endpoint in StoreEndpoint.allCases {
            guard let counts = statistics.requests[endpoint] else { continue }
            let byStatus = counts.sorted { $0.key < $1.key }
                .map { WireMember(String($0.key), .integer(Int64($0.value))) }
            requests.append(WireMember(endpoint.rawValue, .object(byStatus)))
        }
        let refused = StoreCredentials.Refusal.allCases.compactMap { refusal in
            statistics.refusedTokens[refusal].map {
                WireMember(refusal.rawValue, .integer(Int64($0)))
            }
        }
        let sent = outbox.items
        let delivered = sent.count { $0.isDelivered }
        return [
            "environment": .string(options.environment.rawValue),
            "bundleId": .string(options.bundleID),
            "now": .integer(now),
            "subscriptions": .integer(states.values.reduce(0, +)),
            "byStatus": .object(
                states.sorted { $0.key < $1.key }
                    .map { WireMember(String($0.key), .integer($0.value)) }
            ),
            "notifications": [
                "sent": .integer(Int64(sent.count)),
                "delivered": .integer(Int64(delivered)),
                "undelivered": .integer(Int64(sent.count - delivered)),
            ],
            "extensions": .integer(Int64(extensions.count)),
            "requests": .object(requests),
            "refusedTokens": .object(refused),
            "unknownPaths": .integer(Int64(statistics.unknownPaths)),
        ]
    }

    private func page(
        _ request: StoreRequest,
        _ name: String,
        _ count: Int,
        _ element: (Self, Int) -> WireValue
    ) throws(Refusal) -> StoreResponse {
        let (from, limit) = try range(request)
        let end = min(count, from + limit)
        return StoreResponse(
            body: [
                "next": end < count ? .integer(Int64(end)) : .null,
                "total": .integer(Int64(count)),
                "\(name)": .array((min(from, end)..<end).map { element(self, $0) }),
            ]
        )
    }

    private func range(_ request: StoreRequest) throws(Refusal) -> (from: Int, limit: Int) {
        guard let from = Int(request.value("from") ?? "0"), from >= 0,
            let limit = Int(request.value("limit") ?? "100"), 1...Self.pageMax ~= limit
        else { throw Refusal(message: "from counts from 0, and limit is 1 to \(Self.pageMax)") }
        return (from, limit)
    }

    private func subscriptions(_ request: StoreRequest) throws(Refusal) -> StoreResponse {
        let (from, limit) = try range(request)
        let status = request.value("status").map(Int.init)
        if let status, status == nil { throw Refusal(message: "status is a number") }
        var found: [WireValue] = []
        var next: WireValue = .null
        for place in subscribers.indices.dropFirst(from) where subscribers[place].next > 0 {
            let overview = overview(place)
            if let status, overview.status != status { continue }
            guard found.count < limit else {
                next = .integer(Int64(place))
                break
            }
            found.append(overview.wireValue)
        }
        return StoreResponse(body: ["next": next, "subscriptions": .array(found)])
    }

    private func subscription(_ id: String) throws(Refusal) -> StoreResponse {
        guard let place = place(of: id) else {
            throw Refusal(status: 404, message: "there is no such subscription")
        }
        let subscriber = subscribers[place]
        var value = overview(place).wireValue
        value["transactions"] = .array(
            subscriber.standing(at: now).transactions.map { known in
                [
                    "transactionId": .string(known.transaction.transactionID),
                    "productId": .string(known.transaction.productID),
                    "orderId": Self.orderID(ofTransaction: known.transaction.transactionID)
                        .map { .string($0) } ?? .null,
                    "purchaseDate": .integer(known.transaction.purchaseDate),
                    "expiresDate": known.transaction.oneTime == nil
                        ? .integer(known.transaction.expiresDate) : .null,
                    "revocationDate": known.transaction.revocation.map { .integer($0.date) }
                        ?? .null,
                    "modified": .integer(known.modified),
                ]
            }
        )
        // The future is the script's own business.
        value["intervals"] = .array(
            subscriber.intervals.filter { $0.from <= now }.map { interval in
                var interval = interval
                if let until = interval.until, until > now { interval.until = nil }
                return interval.wireValue
            }
        )
        return StoreResponse(body: value)
    }

    private mutating func refund(
        _ id: String,
        _ request: StoreRequest
    ) throws(Refusal) -> StoreResponse {
        let body = request.body.isEmpty ? WireValue.object([]) : WireValue(reading: request.body)
        guard let body, let code = (body["reason"] ?? .integer(0)).number, 0...1 ~= code else {
            throw Refusal(message: "reason is 0 or 1")
        }
        guard place(of: id) != nil else {
            throw Refusal(status: 404, message: "there is no such subscription")
        }
        guard let uuid = refund(id, reason: Int(code)) else {
            throw Refusal(status: 409, message: "there is nothing to refund")
        }
        return StoreResponse(body: ["notificationUUID": .string(uuid)])
    }

    private func delivery(_ id: Int) -> WireValue {
        let item = outbox.items[id]
        let notice = notice(of: id)
        return [
            "notificationUUID": .string(notice.uuid),
            "notificationType": .string(notice.type),
            "subtype": notice.subtype.map { .string($0) } ?? .null,
            "signedDate": .integer(item.signedDate),
            "sendAttempts": .array(item.attempts.map(\.wireValue)),
            "arrivals": .integer(Int64(item.arrivals)),
            "isLostByPlan": .bool(item.fate.isLost),
        ]
    }

    private mutating func setFaults(_ request: StoreRequest) throws(Refusal) -> StoreResponse {
        guard let body = Self.body(request) else { throw Refusal(message: "that is no JSON") }
        do throws(FaultPlan.Invalid) {
            setFaults(try FaultPlan(body))
        } catch {
            throw Refusal(message: error.description)
        }
        return StoreResponse(status: 204)
    }

    private mutating func addFault(_ request: StoreRequest) throws(Refusal) -> StoreResponse {
        guard let body = Self.body(request) else { throw Refusal(message: "that is no JSON") }
        do throws(FaultPlan.Invalid) {
            addFault(try FaultPlan.RequestFault(body))
        } catch {
            throw Refusal(message: error.description)
        }
        return StoreResponse(status: 204)
    }
}

extension FakeAppStore.Overview {
    fileprivate var wireValue: WireValue {
        [
            "originalTransactionId": .string(originalTransactionID),
            "appTransactionId": .string(appTransactionID),
            "inAppOwnershipType": .string(ownership),
            "storefront": .string(storefront),
            "status": .integer(Int64(status)),
            "state": state.map { .string($0.rawValue) } ?? .null,
            "productId": transaction.map { .string($0.productID) } ?? .null,
            "transactionId": transaction.map { .string($0.transactionID) } ?? .null,
            "expiresDate": transaction.map { .integer($0.expiresDate) } ?? .null,
            "extensionError": extensionError.map { .integer($0) } ?? .null,
            "extensionsUsed": .integer(Int64(extensionsUsed)),
        ]
    }
}

extension MassRequest {
    fileprivate var wireValue: WireValue {
        [
            "requestIdentifier": .string(requestIdentifier),
            "productId": .string(productID),
            "storefrontCountryCodes": storefronts.map { .array($0.map { .string($0) }) } ?? .null,
            "extendByDays": .integer(days),
            "extendReasonCode": .integer(reasonCode),
            "keyId": .string(keyID),
            "targets": .integer(Int64(targets.count)),
            "succeededCount": .integer(Int64(succeeded)),
            "failedCount": .integer(Int64(failed)),
            "completeDate": completeDate.map { .integer($0) } ?? .null,
        ]
    }
}
