public import Ledger

/// What the section `extensions` of the configuration says.
public struct ExtensionSettings: Hashable, Sendable {
    /// Whether another operator must approve every request.
    public var approvesAlways = false
    /// From how many days on, exclusive, another operator must approve.
    public var approvesOverDays: Int?
    /// For which of Apple's reasons another operator must approve.
    public var approvesReasons: Set<ExtensionReason> = []
    /// Whether another operator must approve the second extension in 365 days.
    public var approvesSecondUse = false
    /// Whether another operator must approve a mass extension.
    public var approvesMass = false
    /// What a ticket looks like: a letter or sign stands for itself, `#` for digits, `*` for
    /// anything.
    public var ticketPattern: String?
    /// The ticket system's name, for the audit.
    public var ticketSystem: String?
    /// How long a lost answer is waited for before the request is sent again.
    public var resendAfter = Milliseconds.minutes(15)

    /// Says nothing.
    public init() {}

    /// Why another operator must approve a request; nil where none must.
    func approvalRule(days: Int, reason: ExtensionReason, used: Int, isMass: Bool) -> String? {
        if approvesAlways { return "always" }
        if isMass { return approvesMass ? "mass" : nil }
        if let approvesOverDays, days > approvesOverDays { return "days_over_\(approvesOverDays)" }
        if approvesReasons.contains(reason) { return "reason_\(reason.name)" }
        return approvesSecondUse && used > 0 ? "second_use" : nil
    }

    /// Whether a ticket looks as it should.
    func accepts(ticket: String) -> Bool {
        guard let ticketPattern else { return true }
        return Self.matches(Array(ticketPattern)[...], Array(ticket)[...])
    }

    private static func matches(
        _ pattern: ArraySlice<Character>,
        _ text: ArraySlice<Character>
    ) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch first {
        case "*":
            return (text.startIndex...text.endIndex).contains { matches(rest, text[$0...]) }
        case "#":
            let digits = text.prefix { $0.isASCII && $0.isNumber }
            guard !digits.isEmpty else { return false }
            return matches(rest, text[digits.endIndex...])
        default: return text.first == first && matches(rest, text.dropFirst())
        }
    }
}

// MARK: - The configuration file

extension ExtensionSettings {
    /// Reads the section `extensions`.
    init(_ reader: ConfigurationReader) {
        self.init()
        ticketPattern = reader.string("ticket_pattern")
        ticketSystem = reader.string("ticket_system")
        if let minutes: Int64 = reader.integer(
            "resend_after_minutes",
            in: 1...1440,
            remedy: "1 to 1440 minutes that a lost answer is waited for"
        ) {
            resendAfter = .minutes(minutes)
        }
        if let approval = reader.object("approval") {
            approvesAlways = approval.bool("always") ?? false
            approvesSecondUse = approval.bool("second_use") ?? false
            approvesMass = approval.bool("mass") ?? false
            approvesOverDays = approval.integer(
                "days_over",
                in: 0...89,
                remedy: "0 to 89: more days than that need an approval"
            ).map { Int($0) }
            for (index, name) in approval.strings("reasons").enumerated() {
                if let reason = ExtensionReason(name: name) {
                    approvesReasons.insert(reason)
                } else {
                    approval.report(
                        "reasons[\(index)]",
                        "“\(name)” is none of "
                            + ExtensionReason.allCases.map(\.name).joined(separator: ", ")
                    )
                }
            }
            approval.refuseUnknownKeys()
        }
        reader.refuseUnknownKeys()
    }
}
