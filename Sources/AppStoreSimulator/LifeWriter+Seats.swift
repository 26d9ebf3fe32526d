/// What is sold by the seat, as it stands.
struct Seats {
    var isHostedByDeveloper: Bool
    /// The seats of the next period.
    var quantity: Int
}

extension LifeWriter {
    private enum SeatChange {
        case increase
        case decrease
        case refundSeats
        case refundAddition
    }

    /// Gives the period that was just opened its seats.
    mutating func openSeats() {
        guard let seats else { return }
        current.quantity = seats.quantity
        current.seats = NoticeSeats(
            invitationManagement: seats.isHostedByDeveloper ? "DEVELOPER" : "APPLE"
        )
        renewal.quantity = seats.quantity
    }

    /// Changes the number of seats, now and then; the purchaser keeps access all the time.
    mutating func changeSeats(at instant: Int64) {
        let choices: [(weight: Double, choice: SeatChange?)] = [
            (55, nil), (22, .increase), (9, .decrease), (8, .refundSeats), (6, .refundAddition),
        ]
        switch random.weighted(choices) {
        case .increase:
            addSeats(at: instant)
            if random.chance(0.4) {
                refundAddition(at: clock + random.between(Span.hour, Span.day))
            }
        case .decrease: removeSeats(at: instant)
        case .refundSeats: refundSeats(at: instant)
        case .refundAddition: refundAddition(at: instant)
        case nil: break
        }
    }

    /// Seats for the rest of the period: one more transaction beside the running one.
    private mutating func addSeats(at instant: Int64) {
        let start = (max(instant, clock + 1500) - 3 * Span.second) / 1000 * 1000
        guard start > current.purchaseDate, start < current.expiresDate else { return }
        let added = Int(random.between(1, 4))
        var transaction = current
        transaction.transactionID = Self.transactionID(number, periods.count)
        transaction.webOrderLineItemID = Self.lineItemID(number, periods.count)
        transaction.purchaseDate = start
        transaction.reason = .purchase
        transaction.offer = nil
        transaction.quantity = added
        transaction.seats?.revoked = nil
        transaction.seats?.additionalReason = "SEAT_ADDITION"
        periods.append(Period(transaction: transaction, isAddition: true))
        seats?.quantity += added
        renewal.quantity = seats?.quantity
        announce(
            "DID_CHANGE_RENEWAL_PREF",
            "INCREASE_QUANTITY",
            at: instant,
            status: 1,
            about: periods.count - 1
        )
        count(.seatsAdded)
    }

    private mutating func removeSeats(at instant: Int64) {
        guard let before = seats?.quantity, before > 2 else { return }
        seats?.quantity = before - Int(random.between(1, 2))
        renewal.quantity = seats?.quantity
        announce("DID_CHANGE_RENEWAL_PREF", "DECREASE_QUANTITY", at: instant, status: 1)
        count(.seatsRemoved)
        guard random.chance(0.3) else { return }
        // Taking a reduction back has the same subtype.
        seats?.quantity = before
        renewal.quantity = before
        announce(
            "DID_CHANGE_RENEWAL_PREF",
            "DECREASE_QUANTITY",
            at: clock + random.between(Span.minute, 30 * Span.hour),
            status: 1
        )
    }

    /// Money back for some seats; the transaction stays valid.
    private mutating func refundSeats(at instant: Int64) {
        let revoked = (current.seats?.revoked ?? 0) + 1
        guard revoked < current.quantity else { return }
        current.seats?.revoked = revoked
        announce("REFUND", "SEATS", at: instant, status: 1)
        count(.seatsRefunded)
        guard seats?.isHostedByDeveloper == true else { return }
        let seatID = Self.uuid(&random)
        send(
            "UNCLAIM_SEATS",
            form: .unclaimInfo(seatIDs: [seatID]),
            at: clock + random.between(2, 60) * Span.second
        )
        count(.seatsUnclaimed)
    }

    /// Money back for all seats of an addition; the period itself stays.
    private mutating func refundAddition(at instant: Int64) {
        guard let index = liveAdditions.last else { return }
        let date = max(periods[index].transaction.purchaseDate + Span.second, instant)
        periods[index].transaction.revocation = NoticeTransaction.Revocation(
            date: date / 1000 * 1000
        )
        announce("REFUND", at: date + 4 * Span.second, status: 1, about: index)
        count(.additionRefunded)
    }

    private var liveAdditions: [Int] {
        periods.indices.filter {
            $0 > running && periods[$0].isAddition && periods[$0].transaction.revocation == nil
        }
    }

    /// A refund of a whole period takes the seats back that were added to it.
    mutating func refundAdditions(_ revocation: NoticeTransaction.Revocation) {
        for index in liveAdditions {
            periods[index].transaction.revocation = revocation
            announce("REFUND", at: clock + 2 * Span.second, status: 5, about: index)
        }
    }

    /// And the reversal of such a refund gives them back.
    mutating func reverseAdditions(of date: Int64, _ status: Int) {
        for index in periods.indices
        where index > running && periods[index].transaction.revocation?.date == date {
            periods[index].transaction.revocation = nil
            announce("REFUND_REVERSED", at: clock + 2 * Span.second, status: status, about: index)
        }
    }
}
