/// What four subscriptions with neighbouring numbers have to do with each other.
///
/// Most have nothing. Else the first one leads and others follow it: members of its family, members
/// with a seat, or the chain under which it goes on after a migration. A follower is drawn from its
/// leader's life, so lives can still be drawn one by one and in any order.
struct Household: Hashable {
    enum Kind: Hashable {
        case strangers
        case family
        case seats
        case migration
    }

    static let size = 4

    /// What it is.
    let kind: Kind
    /// Its first number.
    let leader: Int
    /// How many follow the leader.
    let followers: Int

    init(of number: Int, seed: UInt64, rareFactor: Double) {
        leader = number / Self.size * Self.size
        var random = SeededRandom(seed: seed ^ 0x486F_7573_6568_6F6C, stream: UInt64(leader))
        kind = random.weighted([
            (weight: max(20, 100 - 6 * rareFactor), choice: .strangers),
            (2.5 * rareFactor, .family), (2 * rareFactor, .seats), (1.5 * rareFactor, .migration),
        ])
        followers =
            switch kind {
            case .strangers: 0
            case .family, .seats: Int(random.between(1, 3))
            case .migration: 1
            }
    }
}

extension Life {
    init(
        _ household: Household,
        number: Int,
        seed: UInt64,
        span: (from: Int64, until: Int64),
        rareFactor: Double
    ) {
        func own(_ number: Int, stop: Int64 = .max) -> Life {
            Life(
                own: number,
                seed: seed,
                span: span,
                stop: stop,
                rareFactor: rareFactor,
                sellsSeats: household.kind == .seats && number == household.leader
            )
        }
        let place = number - household.leader
        switch household.kind {
        case .migration where place == 0:
            // Up to the migration; then the other chain goes on.
            let whole = own(number)
            self = whole.migration.map { own(number, stop: $0) } ?? whole
        case .family, .seats, .migration:
            guard place > 0, place <= household.followers else {
                self = own(number)
                return
            }
            let follower = Follower(
                of: own(household.leader),
                kind: household.kind,
                number: number,
                until: span.until,
                random: SeededRandom(seed: seed, stream: UInt64(number))
            )
            self = follower.life ?? own(number)
        case .strangers: self = own(number)
        }
    }

    /// The instant at which it goes on under another chain: well within a renewed period.
    var migration: Int64? {
        let renewals = steadyRenewals
        return renewals.isEmpty ? nil : renewals[renewals.count / 2] + Follower.settled
    }

    /// When renewals were signed that were followed by nothing for some time.
    var steadyRenewals: [Int64] {
        notices.indices.compactMap { index in
            guard notices[index].type == "DID_RENEW" else { return nil }
            let signed = notices[index].signedDate
            let next = index + 1 < notices.count ? notices[index + 1].signedDate : .max
            return next > signed + Follower.settled + 3 * Span.hour ? signed : nil
        }
    }
}
