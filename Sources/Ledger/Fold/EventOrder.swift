/// The total order of facts, independent of their arrival.
///
/// Source: the lifecycle reference, section 5.3. Compared are the inner `signedDate`, the
/// envelope's, the provenance, then the content. Positions decide only between equal facts.
enum EventOrder {
    /// Whether `left` comes before `right` in the fold.
    static func precedes(_ left: Event, _ right: Event) -> Bool {
        let (a, b) = (left.fact, right.fact)
        if a.factAt != b.factAt { return a.factAt < b.factAt }
        let (signedA, signedB) = (a.signedAt ?? a.factAt, b.signedAt ?? b.factAt)
        if signedA != signedB { return signedA < signedB }
        if a.provenance != b.provenance { return a.provenance > b.provenance }
        if let x = a.transaction, let y = b.transaction, x.digest != y.digest {
            return !wins(x, over: y)
        }
        if let x = a.renewal, let y = b.renewal, x.digest != y.digest { return !wins(x, over: y) }
        let (rankA, rankB) = (rank(a), rank(b))
        if rankA != rankB { return rankA < rankB }
        return left.position < right.position
    }

    /// Which of two versions of one transaction counts.
    ///
    /// What Apple signed always outranks what it did not, however old.
    static func wins(
        _ new: TransactionFact,
        signedAt: Timestamp,
        provenance: Provenance,
        over old: TransactionFact,
        signedAt oldSignedAt: Timestamp,
        provenance oldProvenance: Provenance
    ) -> Bool {
        let (isSigned, wasSigned) = (provenance == .jws, oldProvenance == .jws)
        if isSigned != wasSigned { return isSigned }
        if new.signedDate != old.signedDate { return new.signedDate > old.signedDate }
        if signedAt != oldSignedAt { return signedAt > oldSignedAt }
        if provenance != oldProvenance { return provenance < oldProvenance }
        return wins(new, over: old)
    }

    /// Which of two renewal infos counts.
    static func wins(
        _ new: RenewalFact,
        signedAt: Timestamp,
        provenance: Provenance,
        over old: RenewalFact,
        signedAt oldSignedAt: Timestamp,
        provenance oldProvenance: Provenance
    ) -> Bool {
        let (isSigned, wasSigned) = (provenance == .jws, oldProvenance == .jws)
        if isSigned != wasSigned { return isSigned }
        if new.signedDate != old.signedDate { return new.signedDate > old.signedDate }
        if signedAt != oldSignedAt { return signedAt > oldSignedAt }
        if provenance != oldProvenance { return provenance < oldProvenance }
        return wins(new, over: old)
    }

    /// Among transactions signed in the same millisecond: the revoked one, the upgraded one, the
    /// longer one, the lower digest.
    private static func wins(_ new: TransactionFact, over old: TransactionFact) -> Bool {
        if new.digest == old.digest { return false }
        let (revoked, wasRevoked) = (new.revocationDate != nil, old.revocationDate != nil)
        if revoked != wasRevoked { return revoked }
        if new.isUpgraded != old.isUpgraded { return new.isUpgraded }
        let (end, oldEnd) = (new.expiresDate ?? .earliest, old.expiresDate ?? .earliest)
        if end != oldEnd { return end > oldEnd }
        return new.digest < old.digest
    }

    /// Among renewal infos signed in the same millisecond: the later `renewalDate`, the lower
    /// digest.
    private static func wins(_ new: RenewalFact, over old: RenewalFact) -> Bool {
        if new.digest == old.digest { return false }
        let (date, oldDate) = (new.renewalDate ?? .earliest, old.renewalDate ?? .earliest)
        if date != oldDate { return date > oldDate }
        return new.digest < old.digest
    }

    /// Orders facts that agree in all else, by what they say; text order, never symbol numbers.
    private static func rank(_ fact: Fact) -> String {
        "\(fact.kind)/\(fact.notificationType?.description ?? "")/"
            + "\(fact.subtype?.description ?? "")/\(fact.status ?? 0)"
    }
}
