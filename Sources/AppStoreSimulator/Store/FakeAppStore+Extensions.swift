/// The identity of a request to extend one subscription: an identifier that comes again is the
/// same request.
struct GrantKey: Hashable, Sendable {
    var originalTransactionID: String
    var requestIdentifier: String
}

extension FakeAppStore {
    /// How many extensions a customer may have within a year.
    static let extensionsMax = 2
    /// The year.
    static let extensionYear = 365 * Span.day

    // MARK: - One

    /// Extend a Subscription Renewal Date; whatever is answered gets into the books.
    mutating func extend(_ id: String, _ request: StoreRequest) -> StoreResponse {
        var entry = ExtensionEntry(.request, at: now, originalTransactionID: id)
        entry.keyID = options.credentials.keyID
        let body = Self.body(request)
        entry.days = body?["extendByDays"]?.number
        entry.reasonCode = body?["extendReasonCode"]?.number
        entry.requestIdentifier = body?["requestIdentifier"]?.text
        let response: StoreResponse
        do throws(StoreError) {
            response =
                if let body { try extend(id, body, &entry) } else { Self.malformed }
        } catch {
            entry.errorCode = error.code
            response = StoreResponse(error)
        }
        entry.status = response.status
        extensions.append(entry)
        extensions += pendingFollowers
        pendingFollowers = []
        // Only now, so that the news stands behind the request in everything.
        move(to: now)
        return response
    }

    private mutating func extend(
        _ id: String,
        _ body: WireValue,
        _ entry: inout ExtensionEntry
    ) throws(StoreError) -> StoreResponse {
        let days = try Self.days(body)
        guard let identifier = body["requestIdentifier"]?.text, 1...128 ~= identifier.utf8.count
        else { throw StoreError(4_000_011) }
        guard case .transaction(let place, _)? = try find(id, orThrow: StoreError(4_000_008)),
            subscribers[place].chain.originalTransactionID == id
        else { throw StoreError(4_040_005) }
        let standing = subscribers[place].standing(at: now)
        entry.productID = standing.current?.productID
        entry.expiresBefore = standing.current?.expiresDate
        let key = GrantKey(originalTransactionID: id, requestIdentifier: identifier)
        if let known = grants[key] {
            // It is sent again when its answer was lost; it must not extend twice.
            entry.isRepeat = true
            entry.effectiveDate = extensions[known].effectiveDate
            return answer(of: place, effectiveDate: extensions[known].effectiveDate ?? 0)
        }
        if let refusal = refusal(of: place) { throw refusal }
        let uuid = uuid()
        grant(days, to: place, uuid: uuid, &entry)
        grants[key] = extensions.count
        return answer(of: place, effectiveDate: entry.effectiveDate ?? 0)
    }

    private static func days(_ body: WireValue) throws(StoreError) -> Int64 {
        guard let days = body["extendByDays"]?.number, 1...90 ~= days else {
            throw StoreError(4_000_009)
        }
        guard let reason = body["extendReasonCode"]?.number, 0...3 ~= reason else {
            throw StoreError(4_000_010)
        }
        return days
    }

    private func answer(of place: Int, effectiveDate: Int64) -> StoreResponse {
        let standing = subscribers[place].standing(at: now)
        return StoreResponse(
            body: [
                "effectiveDate": .integer(effectiveDate),
                "originalTransactionId": .string(subscribers[place].chain.originalTransactionID),
                "success": true,
                "webOrderLineItemId": .string(standing.current?.webOrderLineItemID ?? ""),
            ]
        )
    }

    /// Why a subscription cannot be extended now; nil where it can.
    func refusal(of place: Int) -> StoreError? {
        let subscriber = subscribers[place]
        switch subscriber.chain.ownership {
        case "FAMILY_SHARED": return StoreError(4_030_007)
        case "ASSIGNED": return StoreError(4_030_028)
        default: break
        }
        let standing = subscriber.standing(at: now)
        guard subscriber.interval(at: now)?.condition.state == .active,
            let current = standing.current, current.expiresDate > now, current.revocation == nil,
            current.offer?.discountType != "FREE_TRIAL",
            standing.transactions.contains(where: {
                $0.transaction.oneTime == nil && ($0.transaction.price ?? 0) > 0
            })
        else { return StoreError(4_030_004) }
        let year = now - Self.extensionYear
        let used = granted[subscriber.chain.appTransactionID, default: []].filter { $0 > year }
        return used.count < Self.extensionsMax ? nil : StoreError(4_030_005)
    }

    /// Extends a subscription, and those of everybody whom it gives access.
    mutating func grant(
        _ days: Int64,
        to place: Int,
        uuid: String,
        _ entry: inout ExtensionEntry
    ) {
        let length = days * Span.day
        guard let period = extend(place, by: length, uuid: uuid) else { return }
        entry.productID = period.productID
        entry.expiresBefore = period.expiresDate - length
        entry.effectiveDate = period.expiresDate
        entry.notificationUUID = uuid
        granted[subscribers[place].chain.appTransactionID, default: []].append(now)
        for member in members(of: place) {
            guard subscribers[member].interval(at: now)?.condition.state == .active else {
                continue
            }
            let uuid = self.uuid()
            guard let period = extend(member, by: length, uuid: uuid) else { continue }
            var followed = ExtensionEntry(
                .followed,
                at: now,
                originalTransactionID: subscribers[member].chain.originalTransactionID
            )
            followed.requestIdentifier = entry.requestIdentifier
            followed.productID = period.productID
            followed.days = days
            followed.expiresBefore = period.expiresDate - length
            followed.effectiveDate = period.expiresDate
            followed.notificationUUID = uuid
            pendingFollowers.append(followed)
        }
    }

    /// Those whom a subscription gives access, by their places.
    func members(of place: Int) -> [Int] {
        let payer = subscribers[place].number
        return subscribers.indices.dropFirst(place + 1).prefix(Household.size - 1)
            .filter { subscribers[$0].payer == payer }
    }

    private mutating func extend(
        _ place: Int,
        by length: Int64,
        uuid: String
    ) -> NoticeTransaction? {
        guard let period = subscribers[place].extend(by: length, at: now, uuid: uuid) else {
            return nil
        }
        ownNews.insert(uuid)
        agenda.push(Due(date: now, number: place))
        return period
    }

    /// Writes an extension of the script into the books.
    mutating func noteScripted(_ notice: Notice, of place: Int, before: NoticeTransaction?) {
        guard let after = notice.transaction else { return }
        let chain = subscribers[place].chain
        let isMember = subscribers[place].payer != nil
        var entry = ExtensionEntry(
            isMember ? .followed : .script,
            at: notice.signedDate,
            originalTransactionID: chain.originalTransactionID
        )
        entry.productID = after.productID
        entry.effectiveDate = after.expiresDate
        entry.notificationUUID = notice.uuid
        if let before, before.transactionID == after.transactionID {
            entry.expiresBefore = before.expiresDate
            entry.days = (after.expiresDate - before.expiresDate) / Span.day
        }
        extensions.append(entry)
        if !isMember { granted[chain.appTransactionID, default: []].append(notice.signedDate) }
    }
}
