internal import AppStore
internal import Crypto
public import Ledger
internal import Postgres

/// What is said of a request to extend in one of our own events: by an operator, or, in an
/// answer, by Apple.
///
/// The event's evidence is this, as canonical JSON; the rows of `ledger.extension_request` and
/// `ledger.extension_step` are this as typed columns, written in the same transaction. So every
/// column is covered by the chain, and an audit compares the two.
public struct ExtensionNote: Hashable, Sendable {
    /// The value of one field.
    public enum Value: Hashable, Sendable {
        /// A text.
        case text(String)
        /// A whole number.
        case int(Int64)
        /// Yes or no.
        case bool(Bool)
        /// An instant.
        case instant(Timestamp)
        /// A UUID.
        case uuid(UniqueID)
    }

    /// What kind of event it is.
    public var kind: EventKind
    /// The app.
    public var app: AppKey
    /// The `originalTransactionId`, or `mass:` and the request's identifier.
    public var stream: String
    /// Our `requestIdentifier`.
    public var request: UniqueID
    /// When it was said.
    public var at: Timestamp
    /// What was said, by the names of the columns; what has no column is in the evidence only.
    public private(set) var fields: [String: Value] = [:]

    /// Begins a note.
    public init(
        _ kind: EventKind,
        app: AppKey,
        stream: String,
        request: UniqueID,
        at: Timestamp
    ) {
        self.kind = kind
        self.app = app
        self.stream = stream
        self.request = request
        self.at = at
    }

    /// A field's value; nil where it is not said.
    public subscript(name: String) -> Value? {
        get { fields[name] }
        set { fields[name] = newValue }
    }

    /// A text field.
    public subscript(text name: String) -> String? {
        get { if case .text(let text)? = fields[name] { text } else { nil } }
        set { fields[name] = newValue.map { .text($0) } }
    }

    /// A field with a whole number.
    public subscript(int name: String) -> Int64? {
        get { if case .int(let number)? = fields[name] { number } else { nil } }
        set { fields[name] = newValue.map { .int($0) } }
    }

    /// A field with an instant.
    public subscript(instant name: String) -> Timestamp? {
        get { if case .instant(let instant)? = fields[name] { instant } else { nil } }
        set { fields[name] = newValue.map { .instant($0) } }
    }

    /// A field with yes or no.
    public subscript(bool name: String) -> Bool? {
        get { if case .bool(let bool)? = fields[name] { bool } else { nil } }
        set { fields[name] = newValue.map { .bool($0) } }
    }

    /// Whether it is the request itself, not a step after it.
    var isRequest: Bool { kind == .extensionRequested || kind == .massExtensionRequested }
}

extension ExtensionNote {
    /// The event of the log that says so.
    ///
    /// Its key is made of the request and the step, so that a step that is sent again after a lost
    /// answer of the database is a duplicate. A request is approved or rejected, not both.
    public func event() -> NewEvent {
        let isApple = self[text: "body_digest"] != nil
        var event = NewEvent(
            app: app,
            stream: stream,
            eventKey: "x:\(request):\(step)",
            kind: kind,
            provenance: isApple ? .tls : .operator,
            correlation: request.description,
            received: canonicalJSON(with: at),
            form: .raw,
            contentDigest: SHA256.digest(canonicalJSON(with: nil)),
            operator: self[text: "operator_authenticated"],
            ticket: self[text: "ticket"],
            fact: fact
        )
        event.note = self
        return event
    }

    private var step: String {
        switch kind {
        case .extensionRequested, .massExtensionRequested: "requested"
        case .extensionRefused: "refused"
        case .extensionApproved, .massExtensionApproved, .extensionRejected,
            .massExtensionRejected:
            "decided"
        case .extensionApprovalRefused, .massExtensionApprovalRefused:
            "approval_refused:\(at.milliseconds)"
        case .extensionSubmitted, .massExtensionSubmitted: "submitted:\(attempt)"
        case .extensionAnswered, .massExtensionAnswered, .extensionUnanswered,
            .massExtensionUnanswered:
            "answered:\(attempt)"
        case .extensionResolved: "resolved"
        case .massExtensionStatus: "status:\(at.milliseconds)"
        default: kind.description
        }
    }

    private var attempt: Int64 { self[int: "attempt"] ?? 1 }

    /// What the fold needs of it.
    public var fact: Fact {
        let isApple = self[text: "body_digest"] != nil
        var fact = Fact(kind: kind, provenance: isApple ? .tls : .operator, factAt: at)
        var step = ExtensionStep(request: request)
        switch kind {
        case .extensionRequested, .massExtensionRequested:
            step.detail = Int32(truncatingIfNeeded: self[int: "days"] ?? 0)
            step.until = self[instant: "expires_before"]?.adding(.days(Int64(step.detail)))
        case .extensionSubmitted, .massExtensionSubmitted, .extensionAnswered,
            .massExtensionAnswered, .extensionUnanswered, .massExtensionUnanswered:
            step.detail = Int32(truncatingIfNeeded: attempt)
        case .extensionResolved:
            step.detail =
                self[text: "resolution"] == "extended"
                ? ExtensionStep.Resolution.extended.rawValue
                : ExtensionStep.Resolution.notExtended.rawValue
        default: break
        }
        if let success = self[bool: "success"] {
            fact.extensionAnswer = ExtensionAnswer(
                success: success,
                effectiveDate: self[instant: "effective_date"]
            )
        }
        fact.extensionStep = step
        return fact
    }

    // MARK: - The evidence

    /// What was said, with its members in the order of their names and no space between.
    private func canonicalJSON(with at: Timestamp?) -> [UInt8] {
        var members: [String: String] = [
            "bundle_id": Self.quoted(app.bundleID),
            "environment": Self.quoted(app.environment.description),
            "kind": Self.quoted(kind.description),
            "request_identifier": Self.quoted(request.description),
            "stream": Self.quoted(stream),
        ]
        if let at { members["at"] = "\(at.milliseconds)" }
        for (name, value) in fields {
            members[name] =
                switch value {
                case .text(let text): Self.quoted(text)
                case .int(let number): "\(number)"
                case .bool(let bool): "\(bool)"
                case .instant(let instant): "\(instant.milliseconds)"
                case .uuid(let id): Self.quoted(id.description)
                }
        }
        let sorted = members.sorted { Array($0.key.utf8).lexicographicallyPrecedes($1.key.utf8) }
        return Array(
            "{\(sorted.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ","))}".utf8
        )
    }

    /// Whether events of a kind have such evidence.
    public static func exists(for kind: EventKind) -> Bool {
        switch kind {
        case .extensionRequested, .extensionRefused, .extensionApproved, .extensionRejected,
            .extensionApprovalRefused, .extensionSubmitted, .extensionAnswered,
            .extensionUnanswered, .extensionResolved, .massExtensionRequested,
            .massExtensionApproved, .massExtensionRejected, .massExtensionApprovalRefused,
            .massExtensionSubmitted, .massExtensionAnswered, .massExtensionUnanswered,
            .massExtensionStatus:
            true
        default: false
        }
    }

    /// Reads a note back from an event's evidence; nil where it is none.
    public init?(evidence: [UInt8]) throws {
        let document = try JSONDocument(evidence)
        guard let kind = document["kind"]?.text, let bundleID = document["bundle_id"]?.text,
            let environment = document["environment"]?.text,
            let stream = document["stream"]?.text,
            let request = document["request_identifier"]?.text.flatMap({ UniqueID($0) }),
            let at = try document["at"]?.int64()
        else { return nil }
        self.init(
            EventKind(kind),
            app: AppKey(bundleID: bundleID, environment: Environment(environment)),
            stream: stream,
            request: request,
            at: Timestamp(milliseconds: at)
        )
        for column in Self.columns(isRequest: isRequest) + Self.evidenceOnly {
            guard let value = document[column.name], !value.isNull else { continue }
            switch column.type {
            case .text: fields[column.name] = value.text.map { .text($0) }
            case .uuid: fields[column.name] = value.text.flatMap { UniqueID($0) }.map { .uuid($0) }
            case .bool: fields[column.name] = value.bool.map { .bool($0) }
            case .int: fields[column.name] = .int(try value.int64())
            case .instant:
                fields[column.name] = .instant(Timestamp(milliseconds: try value.int64()))
            }
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\u{0}"..<"\u{20}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
