public import Ledger

/// Why a question to Apple got no usable answer.
///
/// The description names what an operator needs: endpoint, page, status, Apple's number and name,
/// and what to do. It holds no token, no key and nothing that a customer sent.
public struct AppStoreAPIError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of error, to switch on.
    public enum Kind: Hashable, Sendable {
        /// Apple would refuse it, so it was not sent.
        case refusedHere
        /// Apple answered with a number of its own.
        case apple(AppleErrorCode)
        /// The server answered with a status and nothing that can be read.
        case status(Int)
        /// Apple does not believe who asks (401).
        case unauthorized
        /// The answer is 200 and not what it should be.
        case unreadableAnswer
        /// There is no whole answer.
        case transport(TransportFailure.Code)
        /// It would take longer than there is patience.
        case outOfPatience
        /// The program is to stop.
        case stopped
    }

    /// What kind of error it is.
    public var kind: Kind
    /// What to read: what happened and what to do.
    public var message: String
    /// The endpoint's stable name.
    public var endpoint: String
    /// Which environment was asked.
    public var environment: Environment
    /// Which page of a list it was, from 1; nil for what has no pages.
    public var page: Int?
    /// The HTTP status; nil where none came.
    public var status: Int?
    /// Apple's number; nil where there is none.
    public var code: AppleErrorCode?
    /// The answer's body, byte for byte; empty where none came.
    public var body: [UInt8] = []
    /// Not before this instant the server wants to be asked again.
    public var retryAt: Timestamp?
    /// How often it was sent.
    public var attempts = 0
    /// Whether Apple may have done what was asked all the same: no answer came, or a fault of the
    /// server's, at this attempt or one before it.
    public var mayHaveHadEffect = false

    /// Makes an error.
    public init(
        _ kind: Kind,
        _ message: String,
        endpoint: APIEndpoint,
        environment: Environment,
        page: Int? = nil
    ) {
        self.kind = kind
        self.message = message
        self.endpoint = endpoint.name
        self.environment = environment
        self.page = page
        if case .apple(let code) = kind { self.code = code }
    }

    /// Whether the same request may be answered a little later.
    public var isRetryable: Bool {
        switch kind {
        case .apple(let code): code.retry != .never
        case .status(let status): status == 429 || status == 408 || status >= 500
        case .unreadableAnswer: true
        case .transport(let code): TransportFailure(code: code, message: "").isRetryable
        case .outOfPatience: true
        case .refusedHere, .unauthorized, .stopped: false
        }
    }

    /// A stable word for metrics, tables and the log's own rows.
    public var outcome: String {
        switch kind {
        case .refusedHere: "refused_here"
        case .apple(let code): "\(code.rawValue)"
        case .status(let status): "\(status)"
        case .unauthorized: "401"
        case .unreadableAnswer: "unreadable"
        case .transport(let code): code.rawValue
        case .outOfPatience: "out_of_patience"
        case .stopped: "stopped"
        }
    }

    /// Where it happened, and the message.
    public var description: String {
        let place = page.map { ", page \($0)" } ?? ""
        let tries = attempts > 1 ? " (after \(attempts) attempts)" : ""
        return "\(endpoint) in \(environment)\(place): \(message)\(tries)"
    }
}

extension AppStoreAPIError {
    /// Reads the answer of a request that failed.
    init(
        _ response: TransportResponse,
        to endpoint: APIEndpoint,
        asking access: APIAccess,
        page: Int?,
        now: Timestamp
    ) {
        let environment = access.host.environment
        let body = try? JSONDocument(response.body)
        let number = body?["errorCode"].flatMap { try? $0.int64() }
        let said = body?["errorMessage"]?.text.map { Self.line($0) }
        let status = response.status
        let kind: Kind
        var message: String
        if status == 401 {
            kind = .unauthorized
            message = Self.unauthorized(response, access, now: now)
        } else if let number {
            let code = AppleErrorCode(number)
            kind = .apple(code)
            message = "Apple answered \(code)" + (said.map { " (\($0))" } ?? "")
            if code.status != status { message += ", HTTP \(status)" }
            if let remedy = Self.remedy(code, access) { message += ": \(remedy)" }
        } else {
            kind = .status(status)
            message = "HTTP \(status) with \(Self.form(response.body))"
            if (300..<400).contains(status) {
                message += "; Apple redirects nothing: is the base URL right?"
            } else if status == 404 {
                message += "; Apple's own 404 has a number: is the base URL right?"
            }
        }
        self.init(kind, message, endpoint: endpoint, environment: environment, page: page)
        self.status = status
        self.body = response.body
        mayHaveHadEffect = status >= 500
        retryAt = RetryAfter.instant(response.header("Retry-After"), now: now)
    }

    /// What a body is that is not Apple's JSON.
    static func form(_ body: [UInt8]) -> String {
        guard !body.isEmpty else { return "an empty body" }
        let start = String(decoding: body.prefix(256), as: UTF8.self).lowercased()
        if start.contains("<html") || start.contains("<!doctype") {
            return "an HTML page instead of Apple's JSON"
        }
        return "a body that is not Apple's JSON (\(body.count) bytes)"
    }

    /// A message of the server on one short line.
    private static func line(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.prefix(200).map { $0.value < 0x20 ? " " : $0 }
            )
        )
    }

    private static func unauthorized(
        _ response: TransportResponse,
        _ access: APIAccess,
        now: Timestamp
    ) -> String {
        var message = "HTTP 401, Apple does not believe who asks. "
        if let date = HTTPDate.instant(response.header("Date")) {
            let seconds = (now.milliseconds - date.milliseconds) / 1000
            message +=
                abs(seconds) > 30
                ? "This machine's clock is \(abs(seconds)) s \(seconds > 0 ? "ahead of" : "behind")"
                    + " Apple's: set it right. "
                : "The clock is not it: it agrees with Apple's. "
        } else {
            message += "The answer has no Date: compare this machine's clock. "
        }
        return message + "Check the key id \(access.key.keyID), the issuer id "
            + "\(access.key.issuerID), the bundle id \(access.bundleID) (an app that was never "
            + "released is known in Sandbox only), that the key is not revoked, and that it is an "
            + "In-App Purchase key and no App Store Connect API key"
    }

    /// What to do about one of Apple's numbers, where there is more to say than its name.
    private static func remedy(_ code: AppleErrorCode, _ access: APIAccess) -> String? {
        let other = access.host.environment == .production ? "Sandbox" : "Production"
        switch code.rawValue {
        case 4_040_010, 4_040_005, 4_040_006, 4_040_001:
            return "\(access.host.environment) does not have it for \(access.bundleID); is it a "
                + "transaction of \(other) (TestFlight and App Review are Sandbox) or of another app?"
        case 4_040_003, 4_040_004:
            return "Apple knows no app \(access.bundleID) in \(access.host.environment); check the "
                + "bundle id"
        case 4_040_007:
            return "no URL for \(access.host.environment) notifications is set up in App Store "
                + "Connect (App Information, App Store Server Notifications)"
        case 4_040_008:
            return "no such test, or its result is not there yet"
        case 4_030_004:
            return "only an active subscription in a paid period can be extended"
        case 4_030_005:
            return "the two extensions of 365 days are used up"
        case 4_030_007:
            return "this is a family member's; extend the purchaser's subscription"
        case 4_030_028:
            return "this seat is assigned; extend the buyer's subscription"
        default: return nil
        }
    }
}
