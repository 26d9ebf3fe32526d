public import Crypto
public import HTTP

/// A certificate authority of one's own, and a certificate of it for servers on this machine.
///
/// Its key is random: who trusts it trusts nobody else who runs a simulator.
public struct SimulatorTLS: Sendable {
    /// The key of the authority.
    public let authorityKey: SigningKey
    /// The certificate that a client has to trust, PEM.
    public let authorityPEM: String
    /// The certificate of the server and its key.
    public let identity: TLSIdentity

    private static let day: Int64 = 86_400
    /// How long both are valid: no longer than it takes to notice that they were forgotten.
    private static let validityDays: Int64 = 397

    /// Makes an authority and a server's certificate.
    ///
    /// - Parameters:
    ///   - names: the server's DNS names.
    ///   - addresses: its IPv4 addresses, four bytes each, or IPv6 ones of sixteen.
    ///   - now: the real instant, seconds since 1970.
    ///   - authorityKey: the key of an authority that was made before.
    public init(
        names: [String] = ["localhost"],
        addresses: [[UInt8]] = [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]],
        atSeconds now: Int64,
        authorityKey: SigningKey = .generateP256()
    ) {
        self.authorityKey = authorityKey
        let issuer = CertificateIssuer(
            name: CertificateName(
                commonName: "Subledger Simulator CA",
                organization: "Not Apple"
            ),
            key: authorityKey
        )
        authorityPEM = PEM.certificate(
            issuer.issue(
                CertificateTemplate(
                    subject: issuer.name,
                    serial: Self.serial(),
                    notBefore: now - Self.day,
                    notAfter: now + Self.validityDays * Self.day,
                    isAuthority: true,
                    pathLength: 0,
                    keyUsage: [.certificateSign]
                ),
                for: authorityKey
            )
        )
        let key = SigningKey.generateP256()
        let certificate = issuer.issue(
            CertificateTemplate(
                subject: CertificateName(commonName: names.first ?? "localhost"),
                serial: Self.serial(),
                notBefore: now - Self.day,
                notAfter: now + Self.validityDays * Self.day,
                extensions: [
                    Self.alternativeNames(names, addresses),
                    // The purpose "server authentication" alone.
                    CertificateExtension(
                        oid: "2.5.29.37",
                        value: [0x30, 0x0A, 0x06, 0x08, 0x2B, 6, 1, 5, 5, 7, 3, 1]
                    ),
                ]
            ),
            for: key
        )
        identity = TLSIdentity(certificatePEM: PEM.certificate(certificate), keyPEM: key.pem)
    }

    private static func alternativeNames(
        _ names: [String],
        _ addresses: [[UInt8]]
    ) -> CertificateExtension {
        var content: [UInt8] = []
        for name in names { content += wrapped(0x82, Array(name.utf8)) }
        for address in addresses { content += wrapped(0x87, address) }
        return CertificateExtension(oid: "2.5.29.17", value: wrapped(0x30, content))
    }

    private static func wrapped(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        precondition(content.count < 65_536)
        return switch content.count {
        case ..<128: [tag, UInt8(content.count)] + content
        case ..<256: [tag, 0x81, UInt8(content.count)] + content
        default: [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 255)] + content
        }
    }

    private static func serial() -> [UInt8] {
        [0x40 | UInt8.random(in: 0..<0x40)] + (0..<15).map { _ in UInt8.random(in: 0...255) }
    }
}
