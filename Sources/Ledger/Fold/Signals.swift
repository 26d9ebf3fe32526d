// What notifications and statuses tell beside transactions and renewal infos.

/// Apple's status at its place in the history.
struct StatusRecord {
    var status: Int32
    var at: Timestamp
    var isSigned: Bool
    var position: Int64

    /// Whether it is one of the five that Apple documents.
    var isKnown: Bool { (1...5).contains(status) }
}

/// What a notification announced about billing.
struct Marker {
    enum Kind: Hashable {
        case failed(grace: Bool)
        case graceEnded
        case expired(ExpirationCause)
    }

    var kind: Kind
    var at: Timestamp
    /// The transaction that the notification carried.
    var transactionID: AppleID?
    var position: Int64
}

/// When a failed charge was announced or implied.
struct Trouble {
    var at: Timestamp
}

/// A promise in an unsigned answer to an extension request.
struct AnswerRecord {
    var effectiveDate: Timestamp
    var at: Timestamp
    var position: Int64
}

extension Marker.Kind {
    /// The marker that a notification sets, nil for those that set none.
    @inline(__always) init?(_ events: Events, _ place: Int, _ head: EventHead) {
        switch head.trigger {
        case .failed: self = .failed(grace: false)
        case .failedWithGrace: self = .failed(grace: true)
        case .graceEnded: self = .graceEnded
        case .expired: self = .expired(ExpirationCause(events, place, head))
        default: return nil
        }
    }
}

extension ExpirationCause {
    /// The cause that an `EXPIRED` notification names: by its subtype, or, where that is missing or
    /// not known, by its renewal info.
    init(_ events: Events, _ place: Int, _ head: EventHead) {
        self.init(subtype: head.subtype)
        if self == .other, let intent = events[place].fact.storedRenewal.expirationIntent {
            self.init(intent: intent)
        }
    }

    /// The cause that an `EXPIRED` notification's subtype names.
    init(subtype: Subtype?) {
        switch subtype {
        case .voluntary: self = .voluntary
        case .billingRetry: self = .billingRetry
        case .priceIncrease: self = .priceIncrease
        case .productNotForSale: self = .productNotForSale
        default: self = .other
        }
    }

    /// The cause that `expirationIntent` names.
    init(intent: Int32) {
        switch intent {
        case 1: self = .voluntary
        case 2: self = .billingRetry
        case 3: self = .priceIncrease
        case 4: self = .productNotForSale
        default: self = .other
        }
    }
}
