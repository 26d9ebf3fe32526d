public import Ledger

/// What `subledger.json` says: the apps whose data is accepted, and optionally the database.
///
/// A file is read whole and checked whole: `ConfigurationError` lists every problem in it, each
/// with the field, what stands there and what is wanted. The format is in `docs/configuration.md`.
public struct Configuration: Hashable, Sendable {
    /// One app.
    public struct App: Hashable, Sendable {
        /// Apple's `bundleId`.
        public var bundleID: String
        /// Apple's number of the app; always there when Production is accepted.
        public var appAppleID: Int64?
        /// The environments whose data is accepted, each once.
        public var environments: [Environment] = [.sandbox]
        /// Root certificates to trust besides Apple's, for Sandbox data only.
        public var anchors: [String] = []
        /// The length of the grace period in days: 3, 16 or 28; nil where none is set up.
        public var gracePeriodDays: Int?
        /// Which renewals get it.
        public var graceScope = GraceScope.allRenewals
        /// Fixes the clock profile; nil chooses it for each transaction.
        public var clockProfile: ClockProfile?
        /// What is known of each product.
        public var products: [String: ProductRules] = [:]
        /// Who gets access when; version and start are given when it is stored.
        public var accessPolicy = AccessPolicy()
        /// Who asks Apple for it, where that is another team than for the others.
        package var appStore: AppStoreSettings?
        /// Whether it was never released, so that Apple's Production server does not know it.
        package var isUnreleased = false

        /// Makes an app that accepts Sandbox data alone.
        public init(bundleID: String) { self.bundleID = bundleID }
    }

    /// The database to use instead of the embedded one.
    public var database: String?
    /// The apps, in the order of the file.
    public var apps: [App] = []

    /// Whether issuers are asked if they took a certificate back (OCSP), for chains never seen.
    public var asksOCSP = false

    /// When others must approve an extension, and the like.
    public var extensions = ExtensionSettings()

    /// How `serve` runs.
    package var service = ServiceSettings()

    /// Whom `serve` forwards notifications to, in the order of the file.
    package var forward: [ForwardDestination] = []

    /// How Apple's Server API is asked.
    package var appStore = AppStoreSettings()

    /// The name that is looked for where no file is named.
    public static let defaultPath = "subledger.json"

    /// The largest file that is read.
    static let fileSizeMaxBytes = 4 << 20

    /// Makes an empty configuration.
    public init() {}
}

/// All that is wrong with a configuration file.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One thing that is wrong.
    public struct Problem: Hashable, Sendable {
        /// Where it is, as a path such as `apps[0].app_apple_id`; empty for the file as a whole.
        public var field: String
        /// What stands there, what is wanted, and what to do.
        public var message: String
    }

    /// The file.
    public var file: String
    /// What is wrong, in the order of the file.
    public var problems: [Problem]

    /// The problems, one a line, each with its field.
    public var description: String {
        let lines = problems.map { problem in
            problem.field.isEmpty
                ? "  \(problem.message)" : "  \(problem.field): \(problem.message)"
        }
        return "\(file) cannot be used:\n" + lines.joined(separator: "\n")
    }
}

extension BillingRetryAccess {
    /// The policy in a word: `deny`, `until_grace_ends`, `days(7)` or `allow`.
    public var text: String {
        switch self {
        case .deny: "deny"
        case .untilGraceEnds: "until_grace_ends"
        case .days(let count): "days(\(count))"
        case .allow: "allow"
        }
    }
}
