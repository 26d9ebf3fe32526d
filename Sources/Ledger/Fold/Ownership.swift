/// Who owned a subscription when.
///
/// The account token stands in transactions. A missing one never clears the owner; a token of an
/// older transaction that Apple signed again never takes it back; Apple's token wins over an
/// operator's link.
struct OwnershipBuilder {
    private struct Claim {
        var owner: UniqueID
        var from: Timestamp
        var position: Int64
        var isLinked: Bool
    }

    private var claims: [Claim] = []
    private var latestStart: Timestamp?

    /// Takes the next fact in the total order; true where two tokens claim one transaction time.
    mutating func apply(_ event: Event) -> Bool {
        let fact = event.fact
        if let owner = fact.linkedOwner {
            if claims.last.map({ $0.isLinked && $0.owner != owner }) ?? true {
                claims.append(
                    Claim(
                        owner: owner,
                        from: fact.factAt,
                        position: event.position,
                        isLinked: true
                    )
                )
            }
            return false
        }
        guard let transaction = fact.transaction, transaction.isSubscription,
            let token = transaction.appAccountToken, let start = transaction.purchaseDate
        else { return false }
        if let latestStart, start < latestStart {
            return claims.last.map { $0.owner != token } ?? false
        }
        latestStart = start
        let current = claims.last { !$0.isLinked }
        guard current?.owner != token else { return false }
        // The first token is the owner's from the purchase on, a change counts when signed.
        let from = current == nil ? start : transaction.signedDate
        claims.removeAll { $0.isLinked && $0.from >= from }
        claims.append(Claim(owner: token, from: from, position: event.position, isLinked: false))
        return false
    }

    /// The intervals, in order; the last is open-ended.
    func intervals() -> [OwnershipInterval] {
        let sorted = claims.sorted { $0.from < $1.from }
        var result: [OwnershipInterval] = []
        for claim in sorted {
            if let last = result.last {
                if last.owner == claim.owner { continue }
                result[result.count - 1].until = claim.from
                if last.from == claim.from { result.removeLast() }
            }
            result.append(
                OwnershipInterval(
                    owner: claim.owner,
                    from: claim.from,
                    until: nil,
                    position: claim.position,
                    isLinked: claim.isLinked
                )
            )
        }
        return result
    }
}
