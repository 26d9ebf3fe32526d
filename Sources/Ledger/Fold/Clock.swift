/// What Apple's clocks say: how long leeway, billing retry and grace last.
///
/// Source: the lifecycle reference, section 4.1, and Apple's "Reducing involuntary subscriber
/// churn".
enum Clock {
    /// The longest period of a sandbox's accelerated clock: 12 h, TestFlight's 24 h.
    static let acceleratedPeriodMax: Milliseconds = .hours(24)

    /// How long before the end of a period Apple begins to charge for the next one.
    static let earlyChargeMax: Milliseconds = .hours(24)

    /// The longest grace period that App Store Connect offers.
    static let graceMax: Milliseconds = .days(28)

    /// Which profile counts for a transaction of so long a period.
    static func profile(period: Milliseconds, rules: AppRules) -> ClockProfile {
        if let fixed = rules.clockProfile { return fixed }
        if rules.environment == .production { return .production }
        return period > acceleratedPeriodMax ? .production : .sandbox
    }

    /// How long after the end a renewal may still be under way.
    static func leeway(_ profile: ClockProfile) -> Milliseconds {
        profile == .production ? .hours(2) : .minutes(10)
    }

    /// How long Apple retries a failed charge, counted from the end of the period.
    static func billingRetry(_ profile: ClockProfile, isCommitment: Bool) -> Milliseconds {
        guard profile == .production else { return .minutes(10) }
        return .days(isCommitment ? 90 : 60)
    }

    /// The grace that configuration promises, counted from the end of the period.
    ///
    /// A weekly plan gets 3 days, or 6 where 16 or 28 is configured; the first charge after a trial
    /// gets none where grace is for what was paid before.
    static func configuredGrace(
        plan: PlanPeriod,
        offer: OfferPhase = .standard,
        rules: AppRules
    ) -> Milliseconds? {
        guard let days = rules.gracePeriodDays else { return nil }
        if offer == .trial, rules.graceScope == .existingPaidRenewals { return nil }
        guard plan == .oneWeek else { return .days(Int64(days)) }
        return .days(days <= 3 ? Int64(days) : 6)
    }

    /// The nominal plan length: configured, or the nearest to the period's.
    static func plan(product: Symbol?, period: Milliseconds, rules: AppRules) -> PlanPeriod {
        if let product, let known = rules.products[product] { return known.period }
        return PlanPeriod.allCases.min {
            abs($0.nominal.rawValue - period.rawValue) < abs($1.nominal.rawValue - period.rawValue)
        } ?? .oneMonth
    }
}

extension PlanPeriod {
    /// The plan's mean length: a month is a twelfth of 365.25 days.
    public var nominal: Milliseconds {
        switch self {
        case .oneWeek: .days(7)
        case .oneMonth: Milliseconds(rawValue: 2_629_800_000)
        case .twoMonths: Milliseconds(rawValue: 2 * 2_629_800_000)
        case .threeMonths: Milliseconds(rawValue: 3 * 2_629_800_000)
        case .sixMonths: Milliseconds(rawValue: 6 * 2_629_800_000)
        case .oneYear: Milliseconds(rawValue: 12 * 2_629_800_000)
        }
    }
}
