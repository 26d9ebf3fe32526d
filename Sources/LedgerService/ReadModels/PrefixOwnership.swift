internal import EventLog
internal import Ledger

/// Which subscriptions belonged to an owner, as a prefix of the log knows it.
///
/// It decides as the view `owner_subscription` does, which sees the newest rows alone; a test holds
/// the two to each other.
struct PrefixOwnership {
    /// One subscription of the owner, how and in which stretch of time.
    struct Holding {
        var key: SubscriptionKey
        var via: String
        var run: Explanation.Owner
    }

    let owner: UniqueID
    private(set) var fold: PrefixFold

    init(_ owner: UniqueID, _ fold: PrefixFold) {
        self.owner = owner
        self.fold = fold
    }

    /// All the owner's subscriptions, some of them in several ways.
    mutating func holdings() throws -> [Holding] {
        var holdings: [Holding] = []
        let position = fold.prefix.position
        for key in try fold.reader.subscriptions(naming: owner, upTo: position) {
            guard let folded = try fold.fold(key) else { continue }
            for run in folded.owners where run.token == owner {
                holdings.append(Holding(key: key, via: "own", run: run))
                for alias in try aliases(of: key) {
                    holdings.append(Holding(key: alias, via: "alias", run: run))
                }
                holdings += try ofSameCustomer(as: key, in: run)
            }
        }
        return holdings
    }

    // MARK: - Migrations

    private mutating func aliases(of key: SubscriptionKey) throws -> Set<SubscriptionKey> {
        var later: Set<SubscriptionKey> = []
        var open = [key]
        while let next = open.popLast() {
            for successor in try successors(of: next) where try !hasOwner(successor) {
                if later.insert(successor).inserted { open.append(successor) }
            }
        }
        return later.union(try earlier(than: key))
    }

    /// What it was made of, unless somebody else owns an older one or another one made of it.
    private mutating func earlier(than key: SubscriptionKey) throws -> Set<SubscriptionKey> {
        var earlier: Set<SubscriptionKey> = []
        var next = try predecessor(of: key)
        while let current = next, earlier.insert(current).inserted {
            if try hasOwner(current) { return [] }
            next = try predecessor(of: current)
        }
        for older in earlier {
            for other in try successors(of: older) where other != key {
                let owners = try fold.fold(other)?.owners ?? []
                if owners.contains(where: { $0.token != owner }) { return [] }
            }
        }
        return earlier
    }

    private mutating func predecessor(of key: SubscriptionKey) throws -> SubscriptionKey? {
        try fold.fold(key)?.subscription.text("previous_original_transaction_id").map {
            SubscriptionKey(appID: key.appID, stream: $0)
        }
    }

    private mutating func successors(of key: SubscriptionKey) throws -> [SubscriptionKey] {
        try fold.reader.subscriptions(madeOf: key, upTo: fold.prefix.position).filter {
            try predecessor(of: $0) == key
        }
    }

    private mutating func hasOwner(_ key: SubscriptionKey) throws -> Bool {
        try fold.fold(key).map { !$0.owners.isEmpty } ?? false
    }

    // MARK: - Family, seats, and what a customer bought without a token

    private mutating func ofSameCustomer(
        as key: SubscriptionKey,
        in run: Explanation.Owner
    ) throws -> [Holding] {
        guard let customer = try customer(of: key) else { return [] }
        let all = try fold.reader.subscriptions(
            ofCustomer: customer,
            app: key.appID,
            upTo: fold.prefix.position
        ).filter { try self.customer(of: $0) == customer }
        var holdings: [Holding] = []
        for other in all {
            guard let folded = try fold.fold(other) else { continue }
            // Two owners at one time: neither gets what carries no token.
            let rivals = folded.owners.filter { $0.token != owner && $0.overlaps(run) }
            guard rivals.isEmpty else { return [] }
            guard other != key, folded.owners.isEmpty else { continue }
            let via =
                switch folded.subscription.text("ownership") {
                case "FAMILY_SHARED": "family"
                case "ASSIGNED": "assigned"
                default: "customer"
                }
            holdings.append(Holding(key: other, via: via, run: run))
        }
        return holdings
    }

    private mutating func customer(of key: SubscriptionKey) throws -> String? {
        try fold.fold(key)?.subscription.text("app_transaction_id")
    }
}

extension Explanation.Owner {
    fileprivate func overlaps(_ other: Self) -> Bool {
        let begins = other.until.map { from < $0 } ?? true
        return begins && until.map { other.from < $0 } ?? true
    }
}
