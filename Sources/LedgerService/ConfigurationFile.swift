internal import AppStore
internal import Ledger

extension Configuration {
    /// Reads and checks a file; paths of certificates in it are meant from the file's own folder.
    ///
    /// - Throws: `InputError` when there is no such file, `ConfigurationError` when it is wrong.
    public init(path: String) throws {
        let bytes = try fileBytes(path: path, sizeMaxBytes: Self.fileSizeMaxBytes)
        try self.init(bytes: bytes, path: path)
    }

    /// Reads and checks the text of a file.
    ///
    /// - Parameters:
    ///   - bytes: the text.
    ///   - path: the file's name for messages, and where relative paths start from.
    /// - Throws: `ConfigurationError` with every problem found.
    public init(bytes: [UInt8], path: String) throws(ConfigurationError) {
        let document: JSONDocument
        do {
            document = try JSONDocument(bytes.droppingByteOrderMark)
        } catch {
            let problem = ConfigurationError.Problem(
                field: "",
                message: "it is no JSON: \(error.message)\(Self.place(error.offset, in: bytes))"
            )
            throw ConfigurationError(file: path, problems: [problem])
        }
        let reader = ConfigurationReader(ConfigurationValue(document.root))
        self.init()
        database = reader.string("database")
        asksOCSP = reader.bool("ocsp") ?? false
        for app in reader.list("apps", of: "an app is an object: {\"bundle_id\": …}") {
            if let app = App(app, folder: folder(of: path)) { apps.append(app) }
        }
        if let section = reader.object("service") {
            service = ServiceSettings(section, folder: folder(of: path))
        }
        let shape = "a destination is an object: {\"url\": …}"
        for element in reader.list("forward", of: shape) {
            if let destination = ForwardDestination(element, folder: folder(of: path)) {
                forward.append(destination)
            }
        }
        var names: Set<String> = []
        for (index, destination) in forward.enumerated()
        where !names.insert(destination.name).inserted {
            reader.report(
                "forward[\(index)].name",
                "“\(destination.name)” is there twice; give each destination a name of its own"
            )
        }
        if let section = reader.object("extensions") { extensions = ExtensionSettings(section) }
        if let section = reader.object("app_store") {
            appStore = AppStoreSettings(section, folder: folder(of: path))
        }
        var bundles: Set<String> = []
        for (index, app) in apps.enumerated() where !bundles.insert(app.bundleID).inserted {
            reader.report(
                "apps[\(index)].bundle_id",
                "“\(app.bundleID)” is there twice; merge them"
            )
        }
        reader.refuseUnknownKeys()
        let problems = reader.problems
        guard problems.isEmpty else { throw ConfigurationError(file: path, problems: problems) }
    }

    /// Where an offset is, for someone with an editor.
    private static func place(_ offset: Int?, in bytes: [UInt8]) -> String {
        guard let offset, offset <= bytes.count else { return "" }
        let before = bytes[..<offset]
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return " (line \(line), column \(offset - lineStart + 1))"
    }
}

extension [UInt8] {
    /// The bytes of a text without the mark that some editors begin it with.
    fileprivate var droppingByteOrderMark: [UInt8] {
        starts(with: [0xEF, 0xBB, 0xBF]) ? Array(dropFirst(3)) : self
    }
}

extension Configuration.App {
    fileprivate init?(_ reader: ConfigurationReader, folder: String) {
        guard let bundleID = reader.required("bundle_id", like: "com.example.app") else {
            // One problem at a time here: without a name the rest would only confuse.
            return nil
        }
        self.init(bundleID: bundleID)
        environments = Self.environments(reader)
        appAppleID = reader.integer(
            "app_apple_id",
            in: 1...Int64.max,
            remedy: "it is the number that App Store Connect shows as “Apple ID” of the app"
        )
        if environments.contains(.production), appAppleID == nil, !reader.has("app_apple_id") {
            reader.report(
                "app_apple_id",
                "missing, and Apple's Production data cannot be checked without it: add the number "
                    + "that App Store Connect shows as “Apple ID” of the app, "
                    + "or take Production out of environments"
            )
        }
        anchors = reader.strings("anchors").map { $0.hasPrefix("/") ? $0 : folder + $0 }
        gracePeriodDays = reader.integer(
            "grace_period_days",
            oneOf: [3, 16, 28],
            remedy: "App Store Connect offers 3, 16 and 28; leave it out where no grace is set up"
        )
        graceScope = reader.word("grace_scope", GraceScope.self) ?? .allRenewals
        clockProfile = reader.word("clock_profile", ClockProfile.self)
        for (id, product) in reader.members("products", of: "{\"group\", \"level\", \"period\"}") {
            products[id] = ProductRules(product)
        }
        if let policy = reader.object("access_policy") { accessPolicy = AccessPolicy(policy) }
        appStore = reader.object("app_store").map { AppStoreSettings(ofApp: $0, folder: folder) }
        isUnreleased = reader.bool("unreleased") ?? false
        reader.refuseUnknownKeys()
    }

    private static func environments(_ reader: ConfigurationReader) -> [Environment] {
        let given = reader.strings("environments")
        guard reader.has("environments") else { return [.production, .sandbox] }
        var result: [Environment] = []
        for (index, text) in given.enumerated() {
            let environment = Environment(text)
            guard environment.unknownText == nil else {
                let nearest = nearest(to: text, among: ["Production", "Sandbox"])
                let hint = nearest.map { "; did you mean “\($0)”?" } ?? ""
                reader.report(
                    "environments[\(index)]",
                    "“\(text)” is none of “Production” and “Sandbox”\(hint)"
                )
                continue
            }
            if !result.contains(environment) { result.append(environment) }
        }
        if given.isEmpty, reader.isList("environments") {
            reader.report("environments", "the list is empty, so nothing would be accepted")
        }
        return result
    }
}

extension ProductRules {
    fileprivate init?(_ reader: ConfigurationReader) {
        let group = reader.required("group", like: "20965663")
        let level = reader.integer(
            "level",
            in: 1...1000,
            remedy: "1 is the highest level of a group, as App Store Connect shows it"
        )
        let period = reader.word("period", PlanPeriod.self)
        if level == nil, !reader.has("level") {
            reader.report("level", "missing; 1 is the highest level of a group")
        }
        if period == nil, !reader.has("period") {
            reader.report("period", "missing; one of 1w, 1m, 2m, 3m, 6m, 1y")
        }
        reader.refuseUnknownKeys()
        guard let group, let level, let period else { return nil }
        self.init(groupID: Symbol(group), level: Int(level), period: period)
    }
}

extension AccessPolicy {
    fileprivate init(_ reader: ConfigurationReader) {
        self.init()
        if let access = reader.billingRetryAccess("billing_retry_access") {
            billingRetryAccess = access
        }
        if let missing = reader.word("missing_grace_date", MissingGraceDate.self) {
            missingGraceDate = missing
        }
        lapseLeeway = reader.integer(
            "lapse_leeway_minutes",
            in: 0...1440,
            remedy: "0 to 1440; left out it is 120 in Production and 10 in accelerated Sandbox"
        ).map { Milliseconds.minutes($0) }
        refundEndsAccess = reader.bool("refund_ends_access") ?? refundEndsAccess
        rescindedConsentSuspends =
            reader.bool("rescinded_consent_suspends") ?? rescindedConsentSuspends
        reader.refuseUnknownKeys()
    }
}

/// The folder that a file is in, with a slash at its end; empty for the current one.
func folder(of path: String) -> String {
    path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
}
