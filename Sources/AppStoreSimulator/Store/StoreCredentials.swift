public import Crypto

/// The In-App Purchase key that the fake App Store knows, and whose it is.
public struct StoreCredentials: Sendable {
    /// The issuer id of the team.
    public var issuerID: String
    /// The id of the key.
    public var keyID: String
    /// The public half of the key.
    public var key: PublicKey

    /// Registers a key.
    public init(issuerID: String, keyID: String, key: PublicKey) {
        self.issuerID = issuerID
        self.keyID = keyID
        self.key = key
    }

    /// The audience that a token must name.
    static let audience = "appstoreconnect-v1"
    /// The longest life of a token.
    static let lifeMaxSeconds: Int64 = 3_600
    /// How far a token's birth may lie ahead of the server's clock.
    static let skewMaxSeconds: Int64 = 60

    /// Why a token is refused.
    ///
    /// Apple does not say; here it can be read beside the statistics, since whoever develops a
    /// client wants to know.
    public enum Refusal: String, Hashable, Sendable, CaseIterable {
        /// There is no `Authorization: Bearer`.
        case missing
        /// It is no compact JWS with JSON in it, or a claim is missing.
        case malformed
        /// It is not ES256.
        case wrongAlgorithm = "wrong_algorithm"
        /// The key id is not the registered one.
        case unknownKey = "unknown_key"
        /// The signature is not the registered key's.
        case badSignature = "bad_signature"
        /// The issuer is not the registered one.
        case wrongIssuer = "wrong_issuer"
        /// The audience is not Apple's.
        case wrongAudience = "wrong_audience"
        /// The bundle id is another app's.
        case wrongBundle = "wrong_bundle"
        /// It lives for more than an hour.
        case livesTooLong = "lives_too_long"
        /// It was made in the future.
        case fromTheFuture = "from_the_future"
        /// It is over.
        case expired
    }

    /// Judges the field `Authorization`; nil where the token is good.
    func refusal(_ authorization: String?, bundleID: String, atSeconds now: Int64) -> Refusal? {
        guard let authorization, authorization.hasPrefix("Bearer ") else { return .missing }
        let token = Array(authorization.utf8.dropFirst("Bearer ".utf8.count))
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3,
            let header = Base64URL.decode(parts[0]).flatMap({ WireValue(reading: $0) }),
            let claims = Base64URL.decode(parts[1]).flatMap({ WireValue(reading: $0) }),
            let signature = Base64URL.decode(parts[2])
        else { return .malformed }
        guard header["alg"]?.text == "ES256" else { return .wrongAlgorithm }
        guard header["kid"]?.text == keyID else { return .unknownKey }
        let message = token[..<parts[1].endIndex]
        guard key.isValidES256(signature: signature, message: message) else { return .badSignature }
        guard claims["iss"]?.text == issuerID else { return .wrongIssuer }
        guard claims["aud"]?.text == Self.audience else { return .wrongAudience }
        guard claims["bid"]?.text == bundleID else { return .wrongBundle }
        guard let made = claims["iat"]?.number, let end = claims["exp"]?.number else {
            return .malformed
        }
        guard end - made <= Self.lifeMaxSeconds else { return .livesTooLong }
        guard made <= now + Self.skewMaxSeconds else { return .fromTheFuture }
        return end > now ? nil : .expired
    }

    /// A request token as a client makes it, for tests and for those who have no client yet.
    ///
    /// - Parameters:
    ///   - key: the private half of a key.
    ///   - header: the header; `alg`, `kid` and `typ`.
    ///   - claims: the claims.
    /// - Returns: the compact JWS.
    public static func token(key: SigningKey, header: WireValue, claims: WireValue) -> String {
        String(decoding: PayloadSigner(key: key, header: header).sign(claims), as: UTF8.self)
    }

    /// A good token from now on.
    public func token(
        key: SigningKey,
        bundleID: String,
        atSeconds now: Int64,
        lifeSeconds: Int64 = 1_200
    ) -> String {
        Self.token(
            key: key,
            header: ["alg": "ES256", "kid": .string(keyID), "typ": "JWT"],
            claims: [
                "iss": .string(issuerID), "iat": .integer(now),
                "exp": .integer(now + lifeSeconds), "aud": .string(Self.audience),
                "bid": .string(bundleID),
            ]
        )
    }
}
