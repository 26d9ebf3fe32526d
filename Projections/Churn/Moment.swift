import Ledger

/// One moment in the life of a subscription, as far as money and staying are concerned.
struct Moment {
    /// What happened.
    enum Kind: String {
        /// The first paid period, without a trial before.
        case newPaid = "new_paid"
        /// A free trial began.
        case trialStarted = "trial_started"
        /// The first paid period after a trial.
        case trialConverted = "trial_converted"
        /// A trial ended and no payment followed.
        case trialLost = "trial_lost"
        /// A paid period after a churn.
        case reactivated
        /// A failed charge was made good.
        case recovered
        /// A subscriber who paid has lost access.
        case accessChurn = "access_churn"
        /// What had lost access is over for good: Apple does not retry any more.
        case finalChurn = "final_churn"
        /// Only the clock says that it lapsed.
        case lapsedUnconfirmed = "lapsed_unconfirmed"
        /// Left a product or currency for another one while paying.
        case switchedOut = "switched_out"
        /// Came to a product or currency from another one while paying.
        case switchedIn = "switched_in"
        /// Pays another amount for the same product: price, offer or seats.
        case priceChanged = "price_changed"
        /// An earlier loss turned out to be none.
        case churnCorrected = "churn_corrected"
        /// Somebody who pays may leave; the cause says why.
        case atRisk = "at_risk"
        /// That is over, by leaving or by staying.
        case riskOver = "risk_over"
        /// Equal charges that follow each other, one or many.
        case charge
        /// Money was paid back.
        case refund
        /// A refund was undone.
        case refundReversed = "refund_reversed"
        /// The first paid period, with all the later periods that were paid.
        case cohort
    }

    /// What a change of the monthly value counts as.
    enum Movement: String {
        case new
        case reactivation
        case expansion
        case contraction
        case churn
        case lapse
        case correction
        /// To or from another currency.
        case currency
    }

    var at: Timestamp
    var kind: Kind
    var cause: String?
    /// What it does to the number of subscribers who pay: 1, 0 or -1.
    var delta: Int32 = 0
    /// What is held from then on, or was until then.
    var holding: Holding?
    /// What it does to the monthly value.
    var monthlyDelta: Int64 = 0
    var movement: Movement?
    /// What it does to the monthly value without offers.
    var standardDelta: Int64 = 0
    /// What it does to the number of those who pay and may leave: 1, 0 or -1.
    var riskDelta: Int32 = 0
    /// Milliunits charged, paid back or taken back again.
    var amount: Int64?
    var confidence = Confidence.confirmed
    /// Which run of paying it belongs to, from 1; a recovery goes on with the run.
    var spell: Int32?
    /// How many periods were paid in that run so far.
    var paidPeriods: Int32?
    /// Whole days since that run began.
    var tenureDays: Int32?
    /// Since when the subscriber paid without a gap.
    var activeSince: Timestamp?
    /// Since when the subscriber paid for this product in this currency.
    var heldSince: Timestamp?
    /// The instant it goes back to: a trial's start, a charge's date, the loss that is made good.
    var relatedAt: Timestamp?
    var isPriceInfluenced = false
    var isExtended = false
    var chargedAt: [Timestamp]?
    var paidOrdinals: [Int32]?
    /// What was charged in each of those periods and not paid back.
    var paidAmounts: [Int64]?
    /// The subscription that this one continues since a migration; at the first payment only.
    var succeeds: AppleID?
    var positions: [Int64]

    /// Makes a moment.
    init(_ kind: Kind, at: Timestamp, cause: String? = nil, positions: [Int64]) {
        self.kind = kind
        self.at = at
        self.cause = cause
        self.positions = positions
    }
}

/// Why somebody who pays may leave; where several hold, the first.
enum Risk: String {
    /// The charge failed and the grace period runs.
    case grace
    /// The charge failed while the paid period still runs.
    case billing
    /// A price increase waits for consent.
    case price
    /// Auto-renew is off, or that of the commitment whose charges still go on.
    case intent

    init?(_ interval: Interval) {
        if interval.state == .gracePeriod {
            self = .grace
        } else if interval.hasBillingTrouble {
            self = .billing
        } else if interval.priceConsent == .pending {
            self = .price
        } else if interval.renewalIntent == .off || interval.commitmentIntent == .off {
            self = .intent
        } else {
            return nil
        }
    }
}

/// The words for why a subscriber was lost.
enum ChurnCause {
    /// The word for a state without access.
    static func word(_ state: SubscriptionState) -> String {
        switch state {
        case .billingRetry, .expired(.billingRetry): "involuntary"
        case .expired(.voluntary): "voluntary"
        case .expired(.priceIncrease): "price"
        case .expired(.productNotForSale): "product"
        case .revoked(.refund), .revoked(.refundProrated): "refund"
        default: "other"
        }
    }
}
