internal import AppStore
internal import EventLog
public import Ledger

/// What became of a wish to extend.
public struct ExtensionResult: Hashable, Sendable {
    /// Our `requestIdentifier`.
    public var request: UniqueID
    /// Apple's `originalTransactionId`, or the mass request's stream.
    public var subscription: String
    /// Which of Apple's servers.
    public var environment: Environment
    /// What became of it.
    public var outcome = ExtensionRecord.Outcome.requested
    /// The rule by which our own side refused it.
    public var rule: String?
    /// Why another operator must approve it.
    public var approvalRule: String?
    /// How many days were asked for.
    public var days: Int
    /// On which ticket.
    public var ticket: String
    /// The end before.
    public var expiresBefore: Timestamp?
    /// The end that Apple's answer promises.
    public var expiresAcked: Timestamp?
    /// The end that Apple signed.
    public var expiresConfirmed: Timestamp?
    /// Apple's HTTP status.
    public var httpStatus: Int?
    /// Apple's error.
    public var appleErrorCode: Int64?
    /// Apple's words for it.
    public var appleErrorMessage: String?
    /// Apple's name for it; nil for a number that Apple does not list.
    public var appleErrorName: String? {
        appleErrorCode.flatMap { AppleErrorCode($0).name }
    }
    /// More in words.
    public var detail: String?
    /// How a lost answer was settled.
    public var resolution: ExtensionStep.Resolution?
    /// How often it was sent.
    public var attempts = 0
    /// How many extensions of the subscription count beside it.
    public var usedByChain: Int
    /// How many extensions of its owner's subscriptions count beside it.
    public var usedByOwner: Int
    /// Whether nothing was written or sent.
    public var isDryRun = false
    /// Whether it is what an earlier request with the same key came to.
    public var isRepeated = false

    init(_ note: ExtensionNote, _ standing: ExtensionStanding?) {
        request = note.request
        subscription = note.stream
        environment = note.app.environment
        approvalRule = note[text: "approval_rule"]
        days = Int(note[int: "days"] ?? 0)
        ticket = note[text: "ticket"] ?? ""
        expiresBefore = note[instant: "expires_before"]
        usedByChain = standing?.usedByChain ?? 0
        usedByOwner = standing?.usedByOwner ?? 0
    }

    /// Takes over what a step says of Apple's answer.
    mutating func note(_ step: ExtensionNote) {
        // That somebody might not approve it changes nothing of what became of it.
        if [.extensionApprovalRefused, .massExtensionApprovalRefused].contains(step.kind) {
            return
        }
        rule = step[text: "rule"] ?? rule
        guard step[int: "attempt"] != nil, step.kind != .extensionSubmitted else { return }
        httpStatus = step[int: "http_status"].map { Int($0) }
        appleErrorCode = step[int: "apple_error_code"]
        appleErrorMessage = step[text: "apple_error_message"]
        detail = step[text: "failure"]
    }

    /// Takes over an answer that was just recorded.
    mutating func take(_ answer: ExtensionNote) {
        note(answer)
        if answer.kind == .extensionRefused {
            outcome = .refusedLocally
            detail = answer[text: "failure"]
            return
        }
        attempts = Int(answer[int: "attempt"] ?? 1)
        switch answer[bool: "success"] {
        case true?:
            outcome = .accepted
            expiresAcked = answer[instant: "effective_date"]
        case false?: outcome = .refusedByApple
        case nil: outcome = .unknown
        }
    }
}

/// What an answer of Apple's says of what was done.
struct AppleVerdict {
    /// Whether it was done; nil where nobody knows.
    var success: Bool?
    var effectiveDate: Timestamp?
    var webOrderLineItemID: String?
    var errorCode: Int64?
    var errorMessage: String?
    /// Why nobody knows, in words, or what to do about a refusal that is none of Apple's rules.
    var failure: String?

    /// Reads an answer: only a 2xx that says so is a yes, only a 4xx is a no.
    ///
    /// After any other answer, and after none, Apple may have done it. A 408 is somebody's who
    /// stands between and waited for Apple.
    init(_ reply: ExtensionReply) {
        guard let status = reply.httpStatus else {
            failure = reply.failure ?? "no answer arrived"
            return
        }
        let document = try? JSONDocument(reply.body)
        errorCode = (try? document?["errorCode"]?.int64()) ?? nil
        errorMessage = document?["errorMessage"]?.text.map { text in
            String(text.filter { $0 != "\0" }.prefix(1000))
        }
        switch status {
        case 200..<300:
            success = document?["success"]?.bool
            if document?["requestIdentifier"]?.text != nil, success == nil { success = true }
            if let milliseconds = (try? document?["effectiveDate"]?.int64()) ?? nil {
                let date = Timestamp(milliseconds: milliseconds)
                effectiveDate = date.isStorable ? date : nil
            }
            webOrderLineItemID = document?["webOrderLineItemId"]?.text
            if success == nil { failure = "HTTP \(status) with a body that does not say" }
        case 408: failure = "HTTP \(status)"
        case 400..<500:
            success = false
            // A refused token or a full hour is nothing that Apple says of the subscription.
            if status == 401 || status == 429 || errorCode == nil { failure = reply.failure }
        default: failure = "HTTP \(status)"
        }
    }
}
