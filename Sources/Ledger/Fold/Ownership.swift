/// Who owned a subscription when.
///
/// The account token stands in transactions. A missing one never clears the owner; a token of an
/// older transaction that Apple signed again never takes it back; Apple's token wins over an
/// operator's link, and a signed token over that of a receipt.
struct OwnershipBuilder: ~Copyable {
    struct Claim {
        var owner: UniqueID
        var from: Timestamp
        var position: Int64
        var isLinked: Bool
    }

    private var claims = Pool<Claim>()
    @Packed private var latestStart: Timestamp?
    /// Whether a claim was signed.
    private var hasSigned = false

    /// Takes an operator's link in.
    mutating func link(_ owner: UniqueID, _ head: EventHead) {
        let last = claims.count - 1
        guard last < 0 || (claims[last].isLinked && claims[last].owner != owner) else { return }
        claims.append(
            Claim(owner: owner, from: head.factAt, position: head.position, isLinked: true)
        )
    }

    /// Takes the next transaction in the total order; true where an older transaction claims
    /// another owner.
    @inline(__always) mutating func apply(
        _ events: Events,
        _ place: Int,
        _ head: EventHead
    ) -> Bool {
        guard let token = events[place].fact.storedTransaction.appAccountToken,
            let start = events[place].fact.storedTransaction.purchaseDate
        else { return false }
        let isSigned = head.provenance == .jws
        if isSigned != hasSigned {
            // A receipt has a say only where nothing signed names an owner.
            guard isSigned else { return claims.indices.contains { claims[$0].owner != token } }
            forgetUnsigned(but: token)
        }
        let last = claims.count - 1
        if let latestStart, start < latestStart {
            // A change of the token is for what runs and what follows: what ended before keeps its own.
            guard last >= 0, claims[last].owner != token else { return false }
            let then = claims.indices.last { claims[$0].from <= start }
            return then.map { claims[$0].owner != token } ?? true
        }
        latestStart = start
        // No link comes after a token, so the last claim tells whether there is one.
        let isOwned = last >= 0 && !claims[last].isLinked
        if isOwned, claims[last].owner == token { return false }
        // The first token is the owner's from the purchase on, a change counts when signed.
        let from = isOwned ? events[place].fact.storedTransaction.signedDate : start
        if last >= 0 { claims.removeAll { $0.isLinked && $0.from >= from } }
        claims.append(Claim(owner: token, from: from, position: head.position, isLinked: false))
        return false
    }

    /// Takes the claims of receipts back, now that Apple signed one; those that say the same stay.
    @inline(never) private mutating func forgetUnsigned(but owner: UniqueID) {
        hasSigned = true
        latestStart = nil
        claims.removeAll { !$0.isLinked && $0.owner != owner }
    }

    mutating func reset() {
        claims.reset()
        latestStart = nil
        hasSigned = false
    }

    /// Adds the intervals, in order; the last is open-ended.
    mutating func append(to result: inout [OwnershipInterval]) {
        claims.sortIfNeeded { $0.from < $1.from }
        for place in claims.indices {
            if let last = result.last {
                if last.owner == claims[place].owner { continue }
                result[result.count - 1].until = claims[place].from
                if last.from == claims[place].from { result.removeLast() }
            }
            result.append(
                OwnershipInterval(
                    owner: claims[place].owner,
                    from: claims[place].from,
                    until: nil,
                    position: claims[place].position,
                    isLinked: claims[place].isLinked
                )
            )
        }
    }
}
