public import Crypto

/// A certificate authority with the shape of Apple's, for test data only.
///
/// Root and intermediate are on P-384, the leaves on P-256; intermediate and leaf carry Apple's
/// marker extensions. Leaves are replaced over time, as Apple's are. Equal seeds give equal bytes.
public struct TestCertificateAuthority: Sendable {
    /// The marker extension of a leaf that signs App Store data.
    public static let leafMarkerOID = "1.2.840.113635.100.6.11.1"
    /// The marker extension of the intermediate.
    public static let intermediateMarkerOID = "1.2.840.113635.100.6.2.1"

    /// One leaf certificate and its key.
    public struct Leaf: Sendable {
        /// The certificate, DER.
        public var certificate: [UInt8]
        /// The instant from which on it is used, ms since 1970.
        public var usedFrom: Int64
        /// Signs with its key and the full chain in the header.
        public var signer: PayloadSigner
    }

    /// The root certificate, DER.
    public let rootDER: [UInt8]
    /// The intermediate certificate, DER.
    public let intermediateDER: [UInt8]
    /// The leaves in order of use.
    public let leaves: [Leaf]
    /// Issues under the root's name.
    public let rootIssuer: CertificateIssuer
    /// Issues under the intermediate's name.
    public let intermediateIssuer: CertificateIssuer

    private let seed: UInt64
    private let from: Int64
    private let until: Int64

    private static let day: Int64 = 86_400_000
    /// How long a leaf is used; Apple's change about this often.
    private static let rotation = 240 * day
    /// How long a leaf is valid: about 25 months, as Apple's.
    private static let leafValidity = 760 * day

    /// Makes an authority whose certificates cover every instant in `from ..< until` (ms).
    ///
    /// Without instants it covers 2015 to 2035.
    public init(
        seed: UInt64 = 1,
        from: Int64 = 1_420_070_400_000,
        until: Int64 = 2_051_222_400_000
    ) {
        precondition(from < until, "an authority needs a time to be valid in")
        self.seed = seed
        self.from = from
        self.until = until
        let rootKey = SigningKey(seed: Self.keySeed(seed, "root"), curve: .p384)
        let intermediateKey = SigningKey(seed: Self.keySeed(seed, "intermediate"), curve: .p384)
        rootIssuer = CertificateIssuer(
            name: CertificateName(
                commonName: "Subledger Test Root CA",
                organizationalUnit: "Test Certification Authority",
                organization: "Not Apple",
                country: "US"
            ),
            key: rootKey
        )
        intermediateIssuer = CertificateIssuer(
            name: CertificateName(
                commonName: "Subledger Test Developer Relations Certification Authority",
                organizationalUnit: "T1",
                organization: "Not Apple",
                country: "US"
            ),
            key: intermediateKey
        )
        rootDER = rootIssuer.issue(
            CertificateTemplate(
                subject: rootIssuer.name,
                serial: Self.serial(seed, 1),
                notBefore: from / 1000 - 3650 * 86_400,
                notAfter: until / 1000 + 3650 * 86_400,
                isAuthority: true,
                keyUsage: [.certificateSign, .revocationListSign]
            ),
            for: rootKey
        )
        intermediateDER = rootIssuer.issue(
            Self.intermediateTemplate(intermediateIssuer.name, seed, from, until),
            for: intermediateKey
        )
        var leaves: [Leaf] = []
        for index in 0...Int((until - 1 - from) / Self.rotation) {
            let start = from + Int64(index) * Self.rotation
            let key = SigningKey(seed: Self.keySeed(seed, "leaf \(index)"))
            let certificate = intermediateIssuer.issue(
                Self.leafTemplate(seed, index: index, from: start),
                for: key
            )
            let signer = PayloadSigner(key: key, chain: [certificate, intermediateDER, rootDER])
            leaves.append(Leaf(certificate: certificate, usedFrom: start, signer: signer))
        }
        self.leaves = leaves
    }

    /// The root certificate as PEM.
    public var rootPEM: String { PEM.certificate(rootDER) }

    /// The signer in use at an instant; outside the authority's time the nearest one.
    public func signer(at instant: Int64) -> PayloadSigner {
        let index = Int((instant - from) / Self.rotation)
        return leaves[min(max(index, 0), leaves.count - 1)].signer
    }

    /// A signer whose chain differs from the real one in what the closures change.
    ///
    /// Its keys are its own, so it never spoils the cached chains of the others.
    public func signer(
        at instant: Int64,
        changingLeaf changeLeaf: (inout CertificateTemplate) -> Void = { _ in },
        changingIntermediate changeIntermediate: (inout CertificateTemplate) -> Void = { _ in }
    ) -> PayloadSigner {
        let key = SigningKey(seed: Self.keySeed(seed, "changed leaf"))
        let middleKey = SigningKey(seed: Self.keySeed(seed, "changed"), curve: .p384)
        let middle = CertificateIssuer(name: intermediateIssuer.name, key: middleKey)
        var middleTemplate = Self.intermediateTemplate(middle.name, seed, from, until)
        changeIntermediate(&middleTemplate)
        let index = Int(max(0, instant - from) / Self.rotation)
        let start = from + Int64(index) * Self.rotation
        var leafTemplate = Self.leafTemplate(seed, index: index + 500, from: start)
        changeLeaf(&leafTemplate)
        return PayloadSigner(
            key: key,
            chain: [
                middle.issue(leafTemplate, for: key),
                rootIssuer.issue(middleTemplate, for: middleKey),
                rootDER,
            ]
        )
    }

    private static func intermediateTemplate(
        _ name: CertificateName,
        _ seed: UInt64,
        _ from: Int64,
        _ until: Int64
    ) -> CertificateTemplate {
        CertificateTemplate(
            subject: name,
            serial: serial(seed, 2),
            notBefore: from / 1000 - 365 * 86_400,
            notAfter: until / 1000 + 1825 * 86_400,
            isAuthority: true,
            pathLength: 0,
            keyUsage: [.certificateSign, .revocationListSign],
            markerOIDs: [intermediateMarkerOID],
            ocspURL: "http://ocsp.example.com/ocsp03-testrootca"
        )
    }

    private static func leafTemplate(
        _ seed: UInt64,
        index: Int,
        from start: Int64
    ) -> CertificateTemplate {
        CertificateTemplate(
            subject: CertificateName(
                commonName: "Test ECC Mac App Store and iTunes Store Receipt Signing",
                organizationalUnit: "Test Developer Relations",
                organization: "Not Apple",
                country: "US"
            ),
            serial: serial(seed, 3 + UInt64(index)),
            notBefore: (start - 7 * day) / 1000,
            notAfter: (start + leafValidity) / 1000,
            markerOIDs: [leafMarkerOID],
            ocspURL: "http://ocsp.example.com/ocsp03-testdeveloperrelations",
            extensions: [certificatePolicies]
        )
    }

    /// A policy text as long as Apple's, so that headers have a realistic size.
    private static let certificatePolicies: CertificateExtension = {
        let notice = """
            Reliance on this certificate by any party is a mistake: it was issued by a simulator \
            for test data, is signed by a key that anybody can compute, and stands for no person \
            and no company.
            """
        // One policy (2.999.1, the arc for examples, stands in for Apple's) with a user notice, in DER.
        let text = [0x0c, 0x81, UInt8(notice.utf8.count)] + Array(notice.utf8)
        let explicit = wrapped(0x30, text)
        let qualifierID: [UInt8] = [0x06, 0x08, 0x2b, 6, 1, 5, 5, 7, 2, 2]
        let qualifier = wrapped(0x30, qualifierID + explicit)
        let policyID: [UInt8] = [0x06, 0x03, 0x88, 0x37, 0x01]
        let policy = wrapped(0x30, policyID + wrapped(0x30, qualifier))
        return CertificateExtension(oid: "2.5.29.32", value: wrapped(0x30, policy))
    }()

    private static func wrapped(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        switch content.count {
        case ..<128: [tag, UInt8(content.count)] + content
        case ..<256: [tag, 0x81, UInt8(content.count)] + content
        default: [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 255)] + content
        }
    }

    private static func keySeed(_ seed: UInt64, _ name: String) -> [UInt8] {
        Array("\(seed) \(name)".utf8)
    }

    /// Sixteen bytes that look random, like Apple's serial numbers.
    private static func serial(_ seed: UInt64, _ number: UInt64) -> [UInt8] {
        var random = SeededRandom(seed: seed, stream: 0xCE27 &+ number)
        return (0..<16).map { UInt8(truncatingIfNeeded: random.next() >> 8) | ($0 == 0 ? 0x40 : 0) }
    }
}
