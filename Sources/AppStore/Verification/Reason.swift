/// Why a signed text was not trusted: a closed list with stable names.
///
/// Where several would fit, the first check that fails decides. The checks come in this order:
/// format, chain, signature, content, dates, identity, nested texts, our own clock. One is taken
/// out of turn: local test data is named as such before anything else about it is judged.
public enum Reason: String, Hashable, CaseIterable, Sendable {
    /// The text is longer than ``CompactJWS/sizeMaxBytes``.
    case tooLarge = "too_large"
    /// It has not three parts, or its signature is not 64 bytes.
    case malformedJWS = "malformed_jws"
    /// A part is not strict base64url.
    case badBase64URL = "bad_base64url"
    /// The header is no JSON object with `x5c` as a list of texts.
    case badHeader = "bad_header"
    /// `alg` is not exactly `ES256`.
    case algorithm
    /// `x5c` has not exactly three certificates.
    case chainLength = "chain_length"
    /// One of the certificates cannot be read, or its key or extensions are not of the right kind.
    case badCertificate = "bad_certificate"
    /// The chain ends in no root that vouches for this.
    case untrustedRoot = "untrusted_root"
    /// A certificate was not issued by the next one, or that one may not issue.
    case brokenChain = "broken_chain"
    /// A certificate was not valid when the payload was signed.
    case certificateDates = "certificate_dates"
    /// A certificate lacks the mark by which Apple tells its purpose.
    case markerOID = "marker_oid"
    /// The signature does not fit the text.
    case badSignature = "bad_signature"
    /// The payload is no JSON object.
    case badJSON = "bad_json"
    /// The payload has a key twice.
    case duplicateKey = "duplicate_key"
    /// The payload does not say when it was signed.
    case signedDateMissing = "signed_date_missing"
    /// The payload was signed later than our clock says it is; only ever undecided.
    case signedDateFuture = "signed_date_future"
    /// It belongs to an app that is not accepted here, or names none.
    case bundleID = "bundle_id"
    /// Its app Apple id is not the accepted app's.
    case appAppleID = "app_apple_id"
    /// Its environment is not accepted for the app, or it names none.
    case environment
    /// It was signed by Xcode or StoreKit testing and never by Apple.
    case localTestData = "local_test_data"
    /// A text nested in it fails a check, or disagrees with what stands around it.
    case nested
    /// Its chain was never seen, and too many such came of late; only ever undecided.
    case chainLimit = "chain_limit"
    /// The issuer has taken a certificate of its chain back; asked only where OCSP is on.
    case revoked
    /// Whether one was taken back could not be asked; only ever undecided.
    case revocationUnknown = "revocation_unknown"

    /// Whether it may pass by itself, so that the same text should be tried again.
    public var isTemporary: Bool {
        self == .signedDateFuture || self == .chainLimit || self == .revocationUnknown
    }
}

/// What was wrong with a signed text.
public struct Rejection: Error, Hashable, Sendable, CustomStringConvertible {
    /// Which check failed.
    public var reason: Reason
    /// The field, what is wrong with it and what helps; safe to log.
    public var detail: String
    /// Whether the outer text's chain and signature are good: one of our anchors did sign it.
    public var isSignatureValid = false
    /// Whether the bytes must be kept although they cannot be used.
    ///
    /// True where every signature is good and the text belongs to an accepted app, or to none that
    /// could be made out, but its content is unreadable, contradicts itself or names no app.
    public var belongsInQuarantine = false
    /// Which check failed in the nested text, for ``Reason/nested``.
    public var nestedReason: Reason?

    /// Makes a rejection.
    public init(reason: Reason, detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// The reason's name and the detail.
    public var description: String { "\(reason.rawValue): \(detail)" }
}

/// What verifying came to.
public enum Verdict<Payload: Sendable>: Sendable {
    /// Signed by an anchor and meant for us.
    case trusted(Payload)
    /// It can never be used.
    case rejected(Rejection)
    /// It may be good, but cannot be told now; try again later.
    case undecided(Rejection)
}
