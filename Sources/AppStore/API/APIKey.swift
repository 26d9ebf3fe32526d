public import Crypto

/// The In-App Purchase key with which requests to Apple are signed.
///
/// The private part is never in a description.
public struct APIKey: Sendable, CustomStringConvertible {
    /// Apple's id of the key, the `kid` of a token.
    public let keyID: String
    /// Apple's id of the team, the `iss` of a token.
    public let issuerID: String
    let signingKey: SigningKey

    /// Takes a key that was read before.
    ///
    /// - Throws: `APIKeyError` for identifiers that cannot be Apple's.
    public init(keyID: String, issuerID: String, signingKey: SigningKey) throws(APIKeyError) {
        guard Self.isIdentifier(keyID) else {
            throw APIKeyError("the key id is no id: App Store Connect shows it beside the key")
        }
        guard Self.isIdentifier(issuerID) else {
            throw APIKeyError(
                "the issuer id is no id: App Store Connect shows it above the list of keys"
            )
        }
        guard signingKey.curve == .p256 else {
            throw APIKeyError("the key is on another curve than P-256, so it is none of Apple's")
        }
        self.keyID = keyID
        self.issuerID = issuerID
        self.signingKey = signingKey
    }

    /// Reads the text of a `.p8` file.
    ///
    /// - Throws: `APIKeyError` with what is wrong with it and what to do.
    public init(keyID: String, issuerID: String, text: String) throws(APIKeyError) {
        try self.init(
            keyID: keyID,
            issuerID: issuerID,
            signingKey: try Self.signingKey(text: text)
        )
    }

    /// The ids; never the key.
    public var description: String { "key \(keyID) of issuer \(issuerID)" }

    private static func isIdentifier(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                0x30...0x39 ~= $0 || 0x41...0x5A ~= $0 || 0x61...0x7A ~= $0 || $0 == 0x2D
                    || $0 == 0x5F
            }
    }

    /// Something odd about a key file's name, such as that it is of another kind; nil for nothing.
    ///
    /// Both kinds of Apple's keys look the same inside. Their names, as they are downloaded, tell
    /// them apart.
    public static func warning(fileName: String, keyID: String) -> String? {
        guard let dot = fileName.lastIndex(of: ".") else { return nil }
        let stem = fileName[..<dot]
        if stem.hasPrefix("AuthKey_") {
            return "\(fileName) is named as an App Store Connect API key is; Apple answers 401 to "
                + "those here. Wanted is an In-App Purchase key (SubscriptionKey_….p8)"
        }
        guard stem.hasPrefix("SubscriptionKey_") else { return nil }
        let named = stem.dropFirst("SubscriptionKey_".count)
        return named == keyID
            ? nil : "\(fileName) is named as the key \(named), not as the configured \(keyID)"
    }
}

/// Why a key cannot be used; `message` holds nothing of the key.
public struct APIKeyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong and what to do.
    public var message: String

    /// Makes an error.
    public init(_ message: String) { self.message = message }

    /// The message.
    public var description: String { message }
}

extension APIKey {
    private static let begin = "-----BEGIN PRIVATE KEY-----"
    private static let end = "-----END PRIVATE KEY-----"

    /// Reads a private key from text, whichever way its line ends were lost.
    ///
    /// Variables of an environment and forms of web pages turn them into `\n` as two characters,
    /// into spaces, or into nothing.
    static func signingKey(text: String) throws(APIKeyError) -> SigningKey {
        let text = text.replacing("\\r", with: "\n").replacing("\\n", with: "\n")
        try refuseOtherKinds(text)
        guard let start = text.firstRange(of: begin) else { throw missingMarks(text) }
        let rest = text[start.upperBound...]
        guard let stop = rest.firstRange(of: end) else {
            throw APIKeyError("the key is cut off: its last line “\(end)” is missing")
        }
        let body = rest[..<stop.lowerBound].utf8.filter { $0 > 0x20 }
        guard let bytes = Base64.decode(Array(body)), !bytes.isEmpty else {
            throw APIKeyError(
                "what is between the first and the last line of the key is no base64: some of it "
                    + "is lost or was changed; download or copy the file again"
            )
        }
        var pem = begin + "\n"
        var encoded = Base64.encode(bytes)[...]
        while !encoded.isEmpty {
            pem += encoded.prefix(64) + "\n"
            encoded = encoded.dropFirst(64)
        }
        guard let key = SigningKey(pem: pem + end + "\n") else {
            throw APIKeyError(
                "it is no elliptic-curve key: Apple's .p8 files hold one (ES256); an RSA key or a "
                    + "part of a key does not do"
            )
        }
        guard key.curve == .p256 else {
            throw APIKeyError("the key is on another curve than P-256, so it is none of Apple's")
        }
        return key
    }

    private static func refuseOtherKinds(_ text: String) throws(APIKeyError) {
        let wanted = "wanted is the .p8 file of an In-App Purchase key"
        let kinds: [(mark: String, what: String)] = [
            ("BEGIN CERTIFICATE", "this is a certificate"),
            ("BEGIN PUBLIC KEY", "this is a public key"),
            ("BEGIN RSA PRIVATE KEY", "this is an RSA key"),
            ("BEGIN ENCRYPTED PRIVATE KEY", "the key is encrypted; Apple's .p8 files are not"),
            ("BEGIN EC PRIVATE KEY", "this is a key in another form (SEC 1) than Apple's (PKCS#8)"),
            ("BEGIN OPENSSH PRIVATE KEY", "this is a key for SSH"),
        ]
        for (mark, what) in kinds where text.contains(mark) {
            throw APIKeyError("\(what); \(wanted)")
        }
    }

    private static func missingMarks(_ text: String) -> APIKeyError {
        let body = text.utf8.filter { $0 > 0x20 }
        guard !body.isEmpty else { return APIKeyError("the key is empty") }
        let inner = Base64.decode(Array(body)).map { String(decoding: $0, as: UTF8.self) }
        if let inner, inner.contains("BEGIN PRIVATE KEY") {
            return APIKeyError(
                "this is base64 of the key file; decode it first: base64 -d < KEY > KEY.p8"
            )
        }
        if inner != nil {
            return APIKeyError(
                "the first and the last line of the key are missing, “\(begin)” and “\(end)”"
            )
        }
        if body.starts(with: Array("eyJ".utf8)) {
            return APIKeyError("this is a token, not the key that tokens are signed with")
        }
        return APIKeyError("this is no key: its first line “\(begin)” is missing")
    }
}
