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

    /// Takes an operator's link in.
    mutating func link(_ owner: UniqueID, _ head: EventHead) {
        guard claims.last.map({ $0.isLinked && $0.owner != owner }) ?? true else { return }
        claims.append(
            Claim(owner: owner, from: head.factAt, position: head.position, isLinked: true)
        )
    }

    /// Takes the next transaction in the total order; true where an older transaction claims
    /// another owner.
    mutating func apply(
        _ events: borrowing [Event],
        _ place: Int,
        _ head: EventHead
    ) -> Bool {
        guard let token = events[place].fact.storedTransaction.appAccountToken,
            let start = events[place].fact.storedTransaction.purchaseDate
        else { return false }
        if let latestStart, start < latestStart {
            return claims.last.map { $0.owner != token } ?? false
        }
        latestStart = start
        if let last = claims.last, !last.isLinked, last.owner == token { return false }
        let current = claims.last { !$0.isLinked }
        guard current?.owner != token else { return false }
        // The first token is the owner's from the purchase on, a change counts when signed.
        let from = current == nil ? start : events[place].fact.storedTransaction.signedDate
        claims.removeAll { $0.isLinked && $0.from >= from }
        claims.append(Claim(owner: token, from: from, position: head.position, isLinked: false))
        return false
    }

    mutating func reset() {
        claims.removeAll(keepingCapacity: true)
        latestStart = nil
    }

    /// The intervals, in order; the last is open-ended.
    func intervals() -> [OwnershipInterval] {
        if claims.count == 1 {
            return [
                OwnershipInterval(
                    owner: claims[0].owner,
                    from: claims[0].from,
                    until: nil,
                    position: claims[0].position,
                    isLinked: claims[0].isLinked
                )
            ]
        }
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
