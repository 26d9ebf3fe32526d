/// A mass extension while it goes on, and what came of it.
struct MassRequest: Sendable {
    var requestIdentifier: String
    var productID: String
    var storefronts: [String]?
    var days: Int64
    var reasonCode: Int64
    var keyID: String
    /// The subscriptions that were active when it was asked for, by their places.
    var targets: [Int]
    /// How many of them were dealt with.
    var done = 0
    var succeeded = 0
    var failed = 0
    /// When it was over.
    var completeDate: Int64?
    /// How long each takes.
    var interval: Int64
}

extension FakeAppStore {
    /// Extend Subscription Renewal Dates for All Active Subscribers.
    mutating func massExtend(_ request: StoreRequest) -> StoreResponse {
        guard let body = Self.body(request) else { return Self.malformed }
        do throws(StoreError) {
            let identifier = try startMassRequest(body)
            return StoreResponse(body: ["requestIdentifier": .string(identifier)])
        } catch {
            var entry = ExtensionEntry(.mass, at: now, originalTransactionID: "")
            entry.keyID = options.credentials.keyID
            entry.requestIdentifier = body["requestIdentifier"]?.text
            entry.productID = body["productId"]?.text
            entry.days = body["extendByDays"]?.number
            entry.reasonCode = body["extendReasonCode"]?.number
            entry.status = error.status
            entry.errorCode = error.code
            extensions.append(entry)
            return StoreResponse(error)
        }
    }

    private mutating func startMassRequest(_ body: WireValue) throws(StoreError) -> String {
        guard let days = body["extendByDays"]?.number, 1...90 ~= days else {
            throw StoreError(4_000_009)
        }
        guard let reason = body["extendReasonCode"]?.number, 0...3 ~= reason else {
            throw StoreError(4_000_010)
        }
        guard let identifier = body["requestIdentifier"]?.text, Self.isUUID(identifier) else {
            throw StoreError(4_000_011)
        }
        guard let product = body["productId"]?.text,
            Catalogue.products.contains(where: { $0.id == product })
        else { throw StoreError(4_000_023) }
        var storefronts: [String]?
        if let value = body["storefrontCountryCodes"], value != .null {
            guard let elements = value.elements else { throw StoreError(4_000_028) }
            guard !elements.isEmpty else { throw StoreError(4_000_027) }
            var codes: [String] = []
            for element in elements {
                guard let code = element.text, code.utf8.count == 3,
                    code.utf8.allSatisfy({ 0x41...0x5A ~= $0 })
                else { throw StoreError(4_000_028) }
                codes.append(code)
            }
            storefronts = codes
        }
        if massRequests.contains(where: { $0.requestIdentifier == identifier }) {
            return identifier
        }
        let targets = subscribers.indices.filter { place in
            let subscriber = subscribers[place]
            guard subscriber.payer == nil, subscriber.interval(at: now)?.condition.state == .active,
                storefronts?.contains(subscriber.chain.storefront.code) ?? true
            else { return false }
            return subscriber.standing(at: now).current?.productID == product
        }
        let request = MassRequest(
            requestIdentifier: identifier,
            productID: product,
            storefronts: storefronts,
            days: days,
            reasonCode: reason,
            keyID: options.credentials.keyID,
            targets: targets,
            interval: max(1, options.massDuration / Int64(targets.count + 1))
        )
        massRequests.append(request)
        massAgenda.push(Due(date: now + request.interval, number: massRequests.count - 1))
        return identifier
    }

    /// Deals with the next subscription of a mass extension, or ends it.
    mutating func stepMassRequest() {
        guard let due = massAgenda.pop() else { return }
        let request = massRequests[due.number]
        guard request.done < request.targets.count else {
            end(due.number)
            return
        }
        let place = request.targets[request.done]
        massRequests[due.number].done += 1
        massAgenda.push(Due(date: due.date + request.interval, number: due.number))
        var entry = ExtensionEntry(
            .mass,
            at: now,
            originalTransactionID: subscribers[place].chain.originalTransactionID
        )
        entry.keyID = request.keyID
        entry.requestIdentifier = request.requestIdentifier
        entry.days = request.days
        entry.reasonCode = request.reasonCode
        let uuid = uuid()
        if let refusal = refusal(of: place) {
            let current = subscribers[place].standing(at: now).current
            massRequests[due.number].failed += 1
            entry.errorCode = refusal.code
            entry.productID = current?.productID
            entry.expiresBefore = current?.expiresDate
            entry.notificationUUID = uuid
            subscribers[place].announce("RENEWAL_EXTENSION", "FAILURE", at: now, uuid: uuid)
            agenda.push(Due(date: now, number: place))
        } else {
            massRequests[due.number].succeeded += 1
            grant(request.days, to: place, uuid: uuid, &entry)
        }
        extensions.append(entry)
        extensions += pendingFollowers
        pendingFollowers = []
    }

    private mutating func end(_ number: Int) {
        massRequests[number].completeDate = now
        let request = massRequests[number]
        var notice = Notice(
            uuid: uuid(),
            type: "RENEWAL_EXTENSION",
            subtype: "SUMMARY",
            signedDate: now
        )
        notice.form = .summary(
            NoticeForm.MassExtension(
                requestIdentifier: request.requestIdentifier,
                productID: request.productID,
                succeeded: request.succeeded,
                failed: request.failed,
                storefronts: request.storefronts
            )
        )
        appNotices.append(notice)
        send(.app(appNotices.count - 1), signedDate: now)
    }

    /// Get Status of Subscription Renewal Date Extensions.
    func massStatus(_ product: String, _ identifier: String) throws(StoreError) -> StoreResponse {
        guard Self.isUUID(identifier) else { throw StoreError(4_000_011) }
        guard Catalogue.products.contains(where: { $0.id == product }) else {
            throw StoreError(4_000_023)
        }
        let found = massRequests.first {
            $0.requestIdentifier == identifier && $0.productID == product
        }
        guard let found else { throw StoreError(4_040_009) }
        var members = [WireMember("requestIdentifier", .string(identifier))]
        members.append(WireMember("complete", .bool(found.completeDate != nil)))
        if let date = found.completeDate {
            members.append(WireMember("completeDate", .integer(date)))
            members.append(WireMember("succeededCount", .integer(Int64(found.succeeded))))
            members.append(WireMember("failedCount", .integer(Int64(found.failed))))
        }
        return StoreResponse(body: .object(members))
    }
}
