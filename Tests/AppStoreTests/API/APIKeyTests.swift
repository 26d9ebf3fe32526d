import Crypto
import Ledger
import Testing

@testable import AppStore

@Suite struct APIKeyTests {
    private static let pem = APISample.signingKey.pem
    private static func read(_ text: String) throws -> SigningKey {
        try APIKey.signingKey(text: text)
    }

    private static let spellings = [
        pem, pem.replacing("\n", with: "\\n"), pem.replacing("\n", with: "\r\n"),
        pem.replacing("\n", with: "\\r\\n"), pem.replacing("\n", with: " "),
        pem.replacing("\n", with: ""), pem + "  \n\n", "\n  " + pem,
    ]

    /// D03: the ways in which a key's line ends get lost on their way through variables.
    @Test(arguments: spellings.indices)
    func d03AKeyIsReadWhicheverWayItsLinesEnd(_ index: Int) throws {
        let key = try Self.read(Self.spellings[index])
        #expect(key.publicPoint == APISample.signingKey.publicPoint)
    }

    /// D03: anything else is refused with a hint, and nothing of the key is in the message.
    @Test func d03OtherTextsAreRefusedWithAHint() throws {
        let lines = Self.pem.split(separator: "\n").map(String.init)
        let inner = lines[1...].dropLast().joined()
        let cases: [(String, String)] = [
            ("", "empty"), (Base64.encode(Array(Self.pem.utf8)), "base64 of the key file"),
            (inner, "first and the last line"), (lines[0] + "\n" + inner, "cut off"),
            (lines[0] + inner.dropLast(9) + lines[lines.count - 1], "no base64"),
            (lines[0] + inner.dropLast(8) + lines[lines.count - 1], "no elliptic-curve key"),
            ("-----BEGIN CERTIFICATE-----\n", "certificate"),
            ("-----BEGIN RSA PRIVATE KEY-----\n", "RSA"),
            ("-----BEGIN PUBLIC KEY-----\n", "public key"),
            ("eyJhbGciOiJFUzI1NiJ9.e30.x", "a token"), ("hello there", "no key"),
            (SigningKey.generateP384().pem, "another curve"),
        ]
        for (text, hint) in cases {
            do {
                _ = try Self.read(text)
                Issue.record("taken: \(hint)")
            } catch let error as APIKeyError {
                #expect(error.message.contains(hint), "\(error.message)")
                let secret = inner.dropFirst(40).prefix(12)
                #expect(!error.message.contains(secret))
            }
        }
    }

    @Test func aKeyShowsItsIdsAndNothingElse() throws {
        let key = try APISample.key()
        #expect("\(key)" == "key 2X9R4HXF34 of issuer 57246542-96fe-1a63-e053-0824d011072a")
        #expect(
            APIKey.warning(fileName: "AuthKey_2X9R4HXF34.p8", keyID: "2X9R4HXF34")?
                .contains("In-App Purchase key") == true
        )
        #expect(
            APIKey.warning(fileName: "SubscriptionKey_AAAAAAAAAA.p8", keyID: "2X9R4HXF34")?
                .contains("AAAAAAAAAA") == true
        )
        let own = APIKey.warning(fileName: "SubscriptionKey_2X9R4HXF34.p8", keyID: "2X9R4HXF34")
        #expect(own == nil)
    }

    /// The token, checked with the public key alone and against Apple's rules.
    @Test func aTokenIsWhatAppleWants() throws {
        let now = APISample.now
        let token = try RequestTokens.signed(
            key: APISample.key(),
            bundleID: "com.example.app",
            now: now
        )
        let parts = token.split(separator: ".").map(String.init)
        try #require(parts.count == 3)
        let header = try JSONDocument(try #require(Base64URL.decode(parts[0])))
        let claims = try JSONDocument(try #require(Base64URL.decode(parts[1])))
        let signature = try #require(Base64URL.decode(parts[2]))
        // A certificate carries the public half alone; Apple has no more of the key either.
        let issuer = CertificateIssuer(
            name: CertificateName(commonName: "t"),
            key: SigningKey(seed: [9], curve: .p384)
        )
        let template = CertificateTemplate(
            subject: CertificateName(commonName: "t"),
            serial: [1],
            notBefore: 0,
            notAfter: 4_000_000_000
        )
        let certificate = issuer.issue(template, for: APISample.signingKey)
        let publicKey = try Certificate(der: certificate).publicKey
        let digest = SHA256.digest(Array("\(parts[0]).\(parts[1])".utf8))
        #expect(publicKey.isValidES256(signature: signature, digest: digest))
        #expect(header["alg"]?.text == "ES256" && header["typ"]?.text == "JWT")
        #expect(header["kid"]?.text == "2X9R4HXF34")
        #expect(claims["iss"]?.text == "57246542-96fe-1a63-e053-0824d011072a")
        #expect(claims["aud"]?.text == "appstoreconnect-v1")
        #expect(claims["bid"]?.text == "com.example.app")
        let issued = try #require(try claims["iat"]?.int64())
        let expires = try #require(try claims["exp"]?.int64())
        // Seconds, not milliseconds; set back a little; at most 20 minutes in all.
        #expect(issued == now.milliseconds / 1000 - 60)
        #expect(expires - issued <= 20 * 60 && expires > now.milliseconds / 1000 + 300)
    }

    @Test func aTokenIsUsedAgainAndRenewedBeforeItEnds() throws {
        let tokens = RequestTokens(key: try APISample.key(), bundleID: "b")
        let first = tokens.token(now: APISample.now)
        #expect(tokens.token(now: APISample.now.adding(.minutes(11))) == first)
        let second = tokens.token(now: APISample.now.adding(.minutes(13)))
        #expect(second != first)
        // A clock that was set back far needs a token of its own.
        #expect(tokens.token(now: APISample.now.adding(.hours(-3))) != second)
    }
}
