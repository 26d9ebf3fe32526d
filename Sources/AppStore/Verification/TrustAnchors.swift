public import Crypto
public import Ledger

/// A root certificate that vouches for signed texts.
public struct Anchor: Sendable {
    /// The certificate.
    public let certificate: Certificate
    /// What to call it: the file it came from, or Apple's name for it.
    public let name: String
    /// Whether it is one of Apple's, known by its fingerprint; any other vouches for Sandbox only.
    public let isBuiltIn: Bool

    /// Whether it may vouch for what belongs to an environment.
    public func vouches(for environment: Environment) -> Bool {
        isBuiltIn || environment == .sandbox
    }
}

/// The roots in which certificate chains may end.
///
/// Apple Root CA - G3 is always among them, known by its SHA-256: Apple sends the certificate
/// itself with every signed text, so no file is needed. Further roots are for testing and vouch
/// for Sandbox only.
public struct TrustAnchors: Sendable {
    /// The fingerprints of Apple's roots, with their names.
    public static let builtIn: [(fingerprint: [UInt8], name: String)] = [
        (
            [
                0x63, 0x34, 0x3A, 0xBF, 0xB8, 0x9A, 0x6A, 0x03, 0xEB, 0xB5, 0x7E, 0x9B, 0x3F, 0x5F,
                0xA7, 0xBE, 0x7C, 0x4F, 0x5C, 0x75, 0x6F, 0x30, 0x17, 0xB3, 0xA8, 0xC4, 0x88, 0xC3,
                0x65, 0x3E, 0x91, 0x79,
            ],
            "Apple Root CA - G3"
        )
    ]

    /// The roots that were added, in order.
    public private(set) var added: [Anchor] = []

    /// The roots that are known by their fingerprints alone; tests know another one.
    private let known: [(fingerprint: [UInt8], name: String)]

    /// Apple's roots alone.
    public init() { self.init(known: Self.builtIn) }

    /// Other roots in the place of Apple's, for tests of what is done with those.
    init(known: [(fingerprint: [UInt8], name: String)]) { self.known = known }

    /// Adds roots that vouch for Production too, for measurements in databases of made-up data.
    ///
    /// No option, no configuration and no command that takes deliveries leads here.
    package mutating func addVouchingForAll(
        _ bytes: [UInt8],
        name: String
    ) throws(AppStoreError) {
        for certificate in try Self.certificates(bytes, name: name) {
            added.append(Anchor(certificate: certificate, name: name, isBuiltIn: true))
        }
    }

    /// Adds the root certificates of a file, PEM or DER, called `name` in messages.
    ///
    /// Apple's own roots are known already and are passed over. Throws where the bytes are empty,
    /// a web page or anything else, and where a certificate is no authority.
    public mutating func add(_ bytes: [UInt8], name: String) throws(AppStoreError) {
        for certificate in try Self.certificates(bytes, name: name) {
            guard certificate.isAuthority, certificate.maySignCertificates else {
                throw AppStoreError(
                    code: .badAnchor,
                    message: "\(name): the certificate is no authority, so no chain can end in it"
                )
            }
            let isKnown =
                knownName(certificate.fingerprint) != nil
                || added.contains { $0.certificate.fingerprint == certificate.fingerprint }
            if !isKnown {
                added.append(Anchor(certificate: certificate, name: name, isBuiltIn: false))
            }
        }
    }

    /// What an operator should know: roots that have expired, or are not valid yet.
    ///
    /// Such a root is no fault: what was signed while it was valid stays verifiable.
    public func warnings(now: Timestamp) -> [String] {
        added.compactMap { anchor in
            let seconds = now.seconds
            if seconds > anchor.certificate.notAfterSeconds {
                return "\(anchor.name): the root certificate has expired"
            }
            if seconds < anchor.certificate.notBeforeSeconds {
                return "\(anchor.name): the root certificate is not valid yet"
            }
            return nil
        }
    }

    /// The anchors that may have issued an intermediate, the third certificate of `x5c` among them
    /// only where it is one of Apple's roots.
    func candidates(issuerOf intermediate: Certificate, third: Certificate) -> [Anchor] {
        var candidates: [Anchor] = []
        if let name = knownName(third.fingerprint) {
            candidates.append(Anchor(certificate: third, name: name, isBuiltIn: true))
        }
        candidates += added.filter { $0.certificate.subject == intermediate.issuer }
        return candidates
    }

    private func knownName(_ fingerprint: [UInt8]) -> String? {
        known.first { $0.fingerprint == fingerprint }?.name
    }

    private static func certificates(
        _ bytes: [UInt8],
        name: String
    ) throws(AppStoreError) -> [Certificate] {
        func fault(_ message: String) -> AppStoreError {
            AppStoreError(
                code: .badAnchor,
                message: "\(name): \(message); a root certificate in DER or PEM is needed"
            )
        }
        guard !bytes.isEmpty else { throw fault("the file is empty") }
        do {
            guard PEM.isText(bytes) else { return [try Certificate(der: bytes)] }
            var certificates: [Certificate] = []
            for der in try PEM.certificates(bytes) {
                certificates.append(try Certificate(der: der))
            }
            return certificates
        } catch {
            throw fault("this is no certificate (\(error.message))")
        }
    }
}

extension Timestamp {
    /// Whole seconds since 1970, rounded down, as certificates count.
    var seconds: Int64 {
        milliseconds >= 0 ? milliseconds / 1000 : (milliseconds + 1) / 1000 - 1
    }
}
