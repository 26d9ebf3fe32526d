internal import AppStore
internal import Ledger
internal import LedgerService

extension Option {
    /// Accepts an app without a configuration.
    static let acceptBundle = Option.list(
        "--accept-bundle",
        "ID",
        "accept the Sandbox data of this app; repeats"
    )
    /// Accepts an app's Production data.
    static let appAppleID = Option.list(
        "--app-apple-id",
        "N",
        "the App Store number of the bundle before it; admits its Production data"
    )
}

extension Acceptance {
    /// What the configuration and the command line accept together.
    ///
    /// - Throws: `CommandFailure` when that is nothing, or `--app-apple-id` follows no bundle.
    init(_ arguments: Arguments, _ configuration: Configuration?) throws {
        try self.init(configuration ?? Configuration())
        var bundleID: String?
        for option in arguments.options {
            switch option.name {
            case Option.acceptBundle.name:
                bundleID = option.value
                accept(
                    AcceptedApp(
                        bundleID: option.value,
                        appAppleID: nil,
                        environments: [.sandbox]
                    )
                )
            case Option.appAppleID.name:
                guard let bundle = bundleID else {
                    throw CommandFailure.usage(
                        "\(option.name) belongs to the --accept-bundle before it; there is none"
                    )
                }
                let number = try Arguments.integer(option.value, of: option.name, in: 1...Int64.max)
                accept(
                    AcceptedApp(
                        bundleID: bundle,
                        appAppleID: number,
                        environments: [.production]
                    )
                )
                bundleID = nil
            case Option.root.name: try addAnchor(option.value)
            default: break
            }
        }
        guard !apps.isEmpty else {
            throw CommandFailure.usage(
                "no app is accepted, so every line would be rejected: list your apps in "
                    + "\(Configuration.defaultPath) or name them with --accept-bundle ID"
            )
        }
        for warning in warnings(now: .now) { printError("subledger: warning: \(warning)") }
    }
}
