/// The total order of facts, independent of their arrival.
///
/// Source: the lifecycle reference, section 5.3. Compared are the inner `signedDate`, the
/// envelope's, the provenance, then the content. Positions decide only between equal facts.
enum EventOrder {
    /// Whether the event at `left` comes before the one at `right` in the fold.
    static func precedes(_ events: Events, _ left: Int, _ right: Int) -> Bool {
        let (factA, factB) = (events[left].fact.factAt, events[right].fact.factAt)
        if factA != factB { return factA < factB }
        let signedA = events[left].fact.signedAt ?? factA
        let signedB = events[right].fact.signedAt ?? factB
        if signedA != signedB { return signedA < signedB }
        return precedesByContent(events[left], events[right])
    }

    /// The order of facts signed at the same instant.
    ///
    /// What carries less comes first. Each step compares all facts alike: one that compared
    /// transactions only where both have one would not be an order, and the result would hang on
    /// the arrival after all.
    private static func precedesByContent(_ left: Event, _ right: Event) -> Bool {
        let (a, b) = (left.fact, right.fact)
        if a.provenance != b.provenance { return a.provenance > b.provenance }
        if a.hasTransaction != b.hasTransaction { return b.hasTransaction }
        if let x = a.transaction, let y = b.transaction, x.digest != y.digest {
            return !wins(Tie(x), over: Tie(y))
        }
        if a.hasRenewal != b.hasRenewal { return b.hasRenewal }
        if let x = a.renewal, let y = b.renewal, x.digest != y.digest {
            return !wins(Tie(x), over: Tie(y))
        }
        // Texts are only compared where something differs, which is rare: an event told twice is not.
        guard
            a.kind != b.kind || a.notificationType != b.notificationType || a.subtype != b.subtype
                || a.status != b.status || a.storedConsumptionReason != b.storedConsumptionReason
        else { return left.position < right.position }
        let (rankA, rankB) = (rank(a), rank(b))
        if rankA != rankB { return rankA < rankB }
        return left.position < right.position
    }

    /// Which of two versions of one transaction counts.
    static func wins(_ new: Period, over old: Period) -> Bool {
        if new.signedDate != old.signedDate || new.signedAt != old.signedAt
            || new.provenance != old.provenance
        {
            return isNewer(
                (new.signedDate, new.signedAt, new.provenance),
                than: (old.signedDate, old.signedAt, old.provenance)
            )
        }
        if new.digest == old.digest { return new.position < old.position }
        return wins(Tie(new), over: Tie(old))
    }

    /// Which of two renewal infos counts.
    static func wins(_ new: RenewalRecord, over old: RenewalRecord, _ events: Events) -> Bool {
        let newAt = events[new.place].fact.signedAt ?? events[new.place].fact.factAt
        let oldAt = events[old.place].fact.signedAt ?? events[old.place].fact.factAt
        if new.signedDate != old.signedDate || newAt != oldAt || new.provenance != old.provenance {
            return isNewer(
                (new.signedDate, newAt, new.provenance),
                than: (old.signedDate, oldAt, old.provenance)
            )
        }
        let newTie = Tie(events[new.place].fact.storedRenewal)
        let oldTie = Tie(events[old.place].fact.storedRenewal)
        if newTie.digest == oldTie.digest { return new.position < old.position }
        return wins(newTie, over: oldTie)
    }

    private typealias Signed = (inner: Timestamp, envelope: Timestamp, provenance: Provenance)

    /// What Apple signed always outranks what it did not, however old.
    private static func isNewer(_ new: Signed, than old: Signed) -> Bool {
        let (isSigned, wasSigned) = (new.provenance == .jws, old.provenance == .jws)
        if isSigned != wasSigned { return isSigned }
        if new.inner != old.inner { return new.inner > old.inner }
        if new.envelope != old.envelope { return new.envelope > old.envelope }
        return new.provenance < old.provenance
    }

    /// What decides between two contents signed in the same millisecond: for transactions the
    /// revoked, the upgraded, the longer; for renewal infos the later `renewalDate`; then the
    /// lower digest.
    private struct Tie {
        var isRevoked = false
        var isUpgraded = false
        var date: Timestamp
        var digest: UInt64

        init(_ fact: TransactionFact) {
            isRevoked = fact.revocationDate != nil
            isUpgraded = fact.isUpgraded
            date = fact.expiresDate ?? .earliest
            digest = fact.digest
        }

        init(_ fact: RenewalFact) {
            date = fact.renewalDate ?? .earliest
            digest = fact.digest
        }

        init(_ period: Period) {
            isRevoked = period.revocation != nil
            isUpgraded = period.isUpgraded
            date = period.expiresDate ?? .earliest
            digest = period.digest
        }
    }

    private static func wins(_ new: Tie, over old: Tie) -> Bool {
        if new.isRevoked != old.isRevoked { return new.isRevoked }
        if new.isUpgraded != old.isUpgraded { return new.isUpgraded }
        if new.date != old.date { return new.date > old.date }
        return new.digest < old.digest
    }

    /// Orders facts that agree in all else, by what they say; text order, never symbol numbers.
    private static func rank(_ fact: Fact) -> String {
        "\(fact.kind)/\(fact.notificationType?.description ?? "")/"
            + "\(fact.subtype?.description ?? "")/\(fact.status ?? 0)/"
            + "\(fact.storedConsumptionReason?.text ?? "")"
    }
}
