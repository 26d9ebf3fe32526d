internal import Crypto
internal import Glibc
public import HTTP

/// An authority for the certificates of test servers, which no one else trusts.
public struct TestCertificates: Sendable {
    private let issuer: CertificateIssuer
    private let root: [UInt8]
    private let now = Int64(time(nil))

    /// Makes one; two of the same name have different keys.
    public init(_ name: String = "Test Authority") {
        let key = SigningKey.generateP256()
        issuer = CertificateIssuer(name: CertificateName(commonName: name), key: key)
        root = issuer.issue(
            CertificateTemplate(
                subject: issuer.name,
                serial: [1],
                notBefore: now - 86_400,
                notAfter: now + 86_400,
                isAuthority: true,
                keyUsage: [.certificateSign]
            ),
            for: key
        )
    }

    /// The root as PEM text.
    public var rootPEM: String { PEM.certificate(root) }

    /// The root, for a client that trusts it alone.
    public var anchors: HTTPClientConfiguration.TrustAnchors { .pem(rootPEM) }

    /// A server's certificate with its key; the names are DNS names or IPv4 addresses.
    public func identity(
        _ names: [String] = ["localhost", "127.0.0.1"],
        from: Int64 = -3_600,
        to: Int64 = 36_000
    ) -> TLSIdentity {
        let key = SigningKey.generateP256()
        let alternatives = names.flatMap { name -> [UInt8] in
            if let address = IPAddress(name), address.isIPv4 {
                return [0x87, 4] + name.split(separator: ".").compactMap { UInt8($0) }
            }
            return [0x82, UInt8(name.utf8.count)] + Array(name.utf8)
        }
        let certificate = issuer.issue(
            CertificateTemplate(
                subject: CertificateName(commonName: "a test server"),
                serial: [2],
                notBefore: now + from,
                notAfter: now + to,
                extensions: [
                    CertificateExtension(
                        oid: "2.5.29.17",
                        value: [0x30, UInt8(alternatives.count)] + alternatives
                    )
                ]
            ),
            for: key
        )
        return TLSIdentity(certificatePEM: PEM.certificate(certificate), keyPEM: key.pem)
    }
}
