/// What configuration says of one app, as far as the fold needs it.
public struct AppRules: Hashable, Sendable {
    /// The app's facts belong to this environment.
    public var environment: Environment
    /// The length of the grace period in days that App Store Connect is set to: 3, 16 or 28.
    ///
    /// Nil where none is configured. A weekly plan gets at most 6.
    public var gracePeriodDays: Int?
    /// Whether grace applies to a first charge after a trial too.
    public var graceScope: GraceScope
    /// What is known of each product.
    public var products: [Symbol: ProductRules]
    /// The access policies in order of `effectiveFrom`; never empty.
    public var policies: [AccessPolicy]
    /// Fixes the clock profile; nil chooses it for each transaction.
    public var clockProfile: ClockProfile?

    /// Makes rules with the default access policy.
    public init(
        environment: Environment,
        gracePeriodDays: Int? = nil,
        graceScope: GraceScope = .allRenewals,
        products: [Symbol: ProductRules] = [:],
        policies: [AccessPolicy] = [AccessPolicy()],
        clockProfile: ClockProfile? = nil
    ) {
        precondition(!policies.isEmpty, "an app has at least the default access policy")
        self.environment = environment
        self.gracePeriodDays = gracePeriodDays
        self.graceScope = graceScope
        self.products = products
        self.policies = policies
        self.clockProfile = clockProfile
    }
}

/// Which renewals a configured grace period applies to (App Store Connect's choice).
public enum GraceScope: String, Hashable, Sendable, CaseIterable {
    /// All renewals, a trial's first charge included.
    case allRenewals = "all_renewals"
    /// Renewals of a period that was paid.
    case existingPaidRenewals = "existing_paid_renewals"
}

/// What configuration says of one product.
public struct ProductRules: Hashable, Sendable {
    /// Apple's `subscriptionGroupIdentifier`.
    public var groupID: Symbol
    /// The rank within the group; 1 is the highest, as in App Store Connect.
    public var level: Int
    /// The plan's nominal length.
    public var period: PlanPeriod

    /// Makes a product's rules.
    public init(groupID: Symbol, level: Int, period: PlanPeriod) {
        self.groupID = groupID
        self.level = level
        self.period = period
    }
}

/// The nominal lengths that a plan can have.
public enum PlanPeriod: String, Hashable, Sendable, CaseIterable {
    /// Seven days.
    case oneWeek = "1w"
    /// A month.
    case oneMonth = "1m"
    /// Two months.
    case twoMonths = "2m"
    /// Three months.
    case threeMonths = "3m"
    /// Six months.
    case sixMonths = "6m"
    /// A year.
    case oneYear = "1y"
}

/// How long Apple's clocks run for a transaction.
public enum ClockProfile: String, Hashable, Sendable, CaseIterable {
    /// Leeway 2 h, billing retry 60 days (a commitment: 90).
    case production
    /// Leeway 10 min, billing retry 10 min.
    case sandbox
}

/// Who gets access when; a versioned row, so that an edit never rewrites what was granted before.
public struct AccessPolicy: Hashable, Sendable {
    /// The version's number, from 1.
    public var version: Int32
    /// From when on it counts.
    public var effectiveFrom: Timestamp
    /// Access while Apple retries a failed charge.
    public var billingRetryAccess: BillingRetryAccess
    /// What to do when grace was announced without a date.
    public var missingGraceDate: MissingGraceDate
    /// How long after the end access goes on while no news has come; nil takes the profile's.
    public var lapseLeeway: Milliseconds?
    /// Whether a refund of the current period ends access at once.
    public var refundEndsAccess: Bool
    /// Whether the withdrawal of a guardian's consent suspends access.
    public var rescindedConsentSuspends: Bool

    /// Makes the default policy, Apple's line, in force from the beginning.
    public init(
        version: Int32 = 1,
        effectiveFrom: Timestamp = .earliest,
        billingRetryAccess: BillingRetryAccess = .deny,
        missingGraceDate: MissingGraceDate = .estimate,
        lapseLeeway: Milliseconds? = nil,
        refundEndsAccess: Bool = true,
        rescindedConsentSuspends: Bool = true
    ) {
        self.version = version
        self.effectiveFrom = effectiveFrom
        self.billingRetryAccess = billingRetryAccess
        self.missingGraceDate = missingGraceDate
        self.lapseLeeway = lapseLeeway
        self.refundEndsAccess = refundEndsAccess
        self.rescindedConsentSuspends = rescindedConsentSuspends
    }

    /// Whether it grants and denies the same, whenever it counts.
    public func decidesLike(_ other: AccessPolicy) -> Bool {
        var same = other
        same.version = version
        same.effectiveFrom = effectiveFrom
        return self == same
    }

    /// The versions that count, in order of `effectiveFrom`.
    ///
    /// From its `effectiveFrom` on a version takes the place of all earlier ones, also of those
    /// that were to count later still.
    public static func inForce(_ versions: [AccessPolicy]) -> [AccessPolicy] {
        var result: [AccessPolicy] = []
        for version in versions.sorted(by: { $0.version < $1.version }) {
            result.removeAll { $0.effectiveFrom >= version.effectiveFrom }
            result.append(version)
        }
        return result
    }
}

/// Whether a subscriber in billing retry is served.
public enum BillingRetryAccess: Hashable, Sendable {
    /// Apple's line: not served.
    case deny
    /// Where no grace was announced, served to `expiresDate` plus the app's configured grace.
    case untilGraceEnds
    /// Served to `expiresDate` plus so many days, at most 60.
    case days(Int)
    /// Served while Apple retries.
    case allow
}

/// What to do when grace is announced without its end.
public enum MissingGraceDate: String, Hashable, Sendable, CaseIterable {
    /// Take the configured length; without one, deny.
    case estimate
    /// Treat it as no grace.
    case deny
}
